"""The cycle through the repository: the service's own store, called in process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.domain.commands import AckItem, Reserved, ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.domain.task import AttemptLog
from app.main import connect, prepare_database
from app.repository.factory import Repositories, open_repositories
from app.repository.protocol import Repository
from app.settings import Settings
from bench.direct.workload import LEASE_SECONDS, MAX_BYTES, QUEUE, TENANT, cycles_per_second, new_tasks
from bench.load import Plan


@asynccontextmanager
async def opened_repository(database_url: str, pool_size: int) -> AsyncIterator[Repository]:
    """The repository on a database, its schema up to date."""
    async with opened_repositories(database_url, pool_size) as repositories:
        yield repositories.tasks


@asynccontextmanager
async def opened_repositories(database_url: str, pool_size: int) -> AsyncIterator[Repositories]:
    """The tasks, and all else that is kept in the database."""
    settings = Settings(database_url=database_url, database_pool_size=pool_size, database_timeout_seconds=60.0)
    await prepare_database(settings, change=True)
    repositories = open_repositories(connect(settings), timeout_seconds=60.0, attempt_log=AttemptLog.FAILURES)
    try:
        yield repositories
    finally:
        await repositories.tasks.close()


def reserve_request(limit: int, queue: str = QUEUE) -> ReserveRequest:
    """What a worker asks for."""
    return ReserveRequest(TENANT, [queue], limit, LEASE_SECONDS, MAX_BYTES, worker_id="bench")


async def run_cycle(repository: Repository, batch: int, queue: str = QUEUE) -> int:
    """Enqueue, reserve and ack so many tasks."""
    await repository.enqueue_many(TENANT, new_tasks(batch, queue))
    [reserved] = await repository.reserve_many([reserve_request(batch, queue)])
    return await ack_all(repository, reserved)


async def ack_all(repository: Repository, reserved: Reserved) -> int:
    """Ack what was reserved."""
    items = [AckItem(lease.task.id, lease_token_hash(lease.lease_token)) for lease in reserved.tasks]
    return len(await repository.ack_many(TENANT, items)) if items else 0


def measure_repository(database_url: str, plan: Plan) -> float:
    """Tasks a second through the repository, with as many callers and connections as the plan has."""

    async def measure() -> float:
        async with opened_repository(database_url, plan.connections) as repository:
            cycles = [lambda batch: run_cycle(repository, batch)] * plan.connections
            return await cycles_per_second(cycles, plan.batch, plan.seconds, plan.warmup_seconds)

    return asyncio.run(measure())
