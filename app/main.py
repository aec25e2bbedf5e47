"""The composition root: settings in, application out."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from sqlalchemy.exc import DBAPIError

from app.api.application import Application
from app.garbage import spare_what_stays
from app.logs import RequestLog, configure_logs
from app.metrics import Metrics
from app.repository.dialect import Dialect, ErrorKind, UnsuitableServer
from app.repository.factory import Repositories, connect_dialect, open_repositories
from app.repository.pool import PoolSettings
from app.repository.schema import SchemaMismatch, check_schema, migrate
from app.service.batcher import BatchLimits
from app.service.dead_letters import DeadLetterService
from app.service.health import HealthService
from app.service.janitor import Janitor
from app.service.queues import QueueService, TopicService
from app.service.tasks import TaskService
from app.service.waiters import Waiters
from app.service.wakeups import WakeUps
from app.settings import Batching, LogFormat, Settings
from app.shutdown import calling_before_shutdown, close_in_time, end_tasks

START_RETRY_SECONDS = 0.5
MAX_BATCH = 1000

logger = logging.getLogger(__name__)


class StartFailed(Exception):
    """The service cannot start; the text says why, in a line for people."""


def create_app(settings: Settings) -> FastAPI:
    """The application on a database whose schema is prepared."""
    metrics = Metrics(settings.metrics_max_queues)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        repositories = open_repositories(
            connect(settings),
            timeout_seconds=settings.database_timeout_seconds,
            attempt_log=settings.attempt_log,
            on_attempts_lost=metrics.attempts_lost.inc,
        )
        waiters = Waiters()
        wakeups = WakeUps(waiters, repositories.tasks, repositories.bell, poll_seconds=settings.wait_poll_seconds)
        janitor = Janitor(repositories.maintenance, metrics, wakeups)
        app.state.metrics = metrics
        app.state.health = HealthService(repositories.tasks)
        app.state.tasks = TaskService(
            repositories.tasks, metrics, waiters, wakeups, batch_limits(settings, repositories)
        )
        app.state.dead_letters = DeadLetterService(repositories.tasks, repositories.topology, metrics, wakeups)
        app.state.queues = QueueService(repositories.topology, metrics, wakeups)
        app.state.topics = TopicService(repositories.topology, metrics, wakeups)
        background = [asyncio.create_task(wakeups.run())]
        if settings.janitor:
            background.append(asyncio.create_task(janitor.run()))
        with calling_before_shutdown(waiters.close):
            yield
        await app.state.tasks.drain()
        await end_tasks(background)
        bell = () if repositories.bell is None else (repositories.bell.close,)
        await close_in_time(*bell, repositories.tasks.close)

    log = RequestLog(as_json=settings.log_format is LogFormat.JSON)
    return Application(version("leasemq"), metrics, log, any_host=settings.insecure, lifespan=lifespan)


def batch_limits(settings: Settings, repositories: Repositories) -> BatchLimits:
    """How calls of a kind share transactions: a batch of the largest size that one call may have is large enough."""
    if settings.batching is Batching.OFF:
        return BatchLimits(in_flight=settings.max_waiting, max_weight=1, max_waiting=settings.max_waiting)
    return BatchLimits(
        in_flight=repositories.writers,
        max_weight=MAX_BATCH,
        max_waiting=settings.max_waiting,
        worthwhile=repositories.worthwhile,
    )


def create_app_from_environment() -> FastAPI:
    """What each server process runs."""
    settings = Settings.from_environment()
    configure_logs(settings.log_level, as_json=settings.log_format is LogFormat.JSON)
    app = create_app(settings)
    spare_what_stays()
    return app


def connect(settings: Settings) -> Dialect:
    """Raises `StartFailed` for a URL that is not one."""
    pool = PoolSettings(
        size=settings.database_pool_size,
        timeout_seconds=settings.database_timeout_seconds,
        lock_timeout_seconds=settings.database_lock_timeout_seconds,
    )
    try:
        return connect_dialect(settings.database_url, pool)
    except ValueError as error:
        raise StartFailed(f"MQ_DATABASE_URL: {error}") from error


async def prepare_database(settings: Settings, *, change: bool) -> None:
    """Waits for the database, and brings its schema up to date or, without `change`, sees that it is."""
    dialect = connect(settings)
    try:
        await _wait_for(dialect, settings.start_wait_seconds)
        await (migrate(dialect) if change else check_schema(dialect))
    except (SchemaMismatch, UnsuitableServer) as error:
        raise StartFailed(str(error)) from error
    except DBAPIError as error:
        raise StartFailed(f"The database refused: {error.orig}") from error
    finally:
        await dialect.close()


async def _wait_for(dialect: Dialect, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            async with dialect.connect(write=False) as connection:
                await dialect.check_server(connection)
                return
        except (DBAPIError, OSError, TimeoutError) as error:
            if isinstance(error, DBAPIError) and dialect.kind_of(error) is ErrorKind.OTHER:
                raise
            if time.monotonic() > deadline:
                raise StartFailed(f"The database does not answer: {getattr(error, 'orig', error)}") from error
            logger.warning("waiting for the database")
            await asyncio.sleep(START_RETRY_SECONDS)
