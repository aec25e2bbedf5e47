"""One run of the archive, from the lock to the last mark."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from sqlalchemy.exc import DBAPIError

from app.pipeline.archive.adapters import CheckLock
from app.pipeline.archive.database import ArchivedDatabase, open_database
from app.pipeline.archive.progress import LogLines, Watcher
from app.pipeline.archive.pruning import Pruner
from app.pipeline.archive.reading import read_rows
from app.pipeline.archive.windows import BATCH_ROWS, Window, count_rows, find_windows
from app.pipeline.errors import PipelineError, PipelineStopped
from app.pipeline.lake import Lake, create_lake
from app.pipeline.lake.batches import OnStep, ignore_step, prepare_batch
from app.pipeline.lake.lake import find_lake
from app.pipeline.lake.manifests import Manifest
from app.pipeline.messages import SPARK_ERRORS
from app.pipeline.source.factory import find_database
from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, Table

# A repeated ack succeeds for an hour, by the finished task's row.
LEAST_AGE = timedelta(hours=1)
TOLD_QUEUES = 10
GO_ON = "Nothing is lost: run the archive again, and it goes on where it stopped."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchiveRequest:
    """What is archived, and to where."""

    database_url: str
    lake_url: str
    older_than: timedelta
    dead_letters: bool = False
    batch_rows: int = BATCH_ROWS

    @property
    def tables(self) -> tuple[Table, ...]:
        """In this order: attempts go when their tasks have gone."""
        return (HISTORY, DLQ, ATTEMPTS) if self.dead_letters else (HISTORY, ATTEMPTS)


async def check_request(request: ArchiveRequest) -> None:
    """Raises PipelineError for what can be known to be wrong before Spark is started."""
    if request.older_than < LEAST_AGE:
        raise PipelineError("--older-than must be an hour at least: a worker may repeat an ack for so long.")
    # What reads and what prunes are two drivers.
    find_database(request.database_url).check()
    async with open_database(request.database_url):
        pass


async def rehearse(spark: SparkSession, request: ArchiveRequest) -> dict[str, int]:
    """How many rows of each table would move; nothing is changed."""
    async with open_database(request.database_url) as database:
        find_lake(spark, request.lake_url, await database.identity())
        cut_off = await database.now() - request.older_than
        await warn_of_short_lives(database, request)
        return {table.name: await _count(database, table, cut_off, request) for table in request.tables}


async def _count(database: ArchivedDatabase, table: Table, cut_off: datetime, request: ArchiveRequest) -> int:
    windows = await find_windows(database, table, cut_off, request.batch_rows)
    return await count_rows(database, table, windows, cut_off, dead_letters=request.dead_letters)


async def archive(
    spark: SparkSession, request: ArchiveRequest, watcher: Watcher | None = None, on_step: OnStep = ignore_step
) -> dict[str, int]:
    """Moves what is old enough to the lake, and tells how many rows of each table."""
    async with open_database(request.database_url) as database, database.adapter.lock() as check_lock:
        lake = create_lake(spark, request.lake_url, await database.identity())
        cut_off = await database.now() - request.older_than
        await warn_of_short_lives(database, request)
        pruner = Pruner(lake, database, check_lock, on_step)
        run = Run(lake, database, check_lock, pruner, request, cut_off, watcher or LogLines(), on_step)
        # All of them are read now: one that is none is the user's to put right, and nothing is changed yet.
        await asyncio.to_thread(lake.manifests)
        with going_on_later():
            await run.recover()
            return {table.name: await run.move(table) for table in request.tables}


async def warn_of_short_lives(database: ArchivedDatabase, request: ArchiveRequest) -> None:
    """Warns of queues whose rows are dropped before the archive takes them."""
    days = request.older_than / timedelta(days=1)
    await _warn(database, "short_lived_history", "history_days", days)
    if request.dead_letters:
        await _warn(database, "short_lived_dead_letters", "dlq_days", days)


async def _warn(database: ArchivedDatabase, statement: str, setting: str, days: float) -> None:
    queues = await database.rows(statement, days=days)
    for queue in queues[:TOLD_QUEUES]:
        logger.warning(
            "queue %s of tenant %s has %s %g, no longer than --older-than: its rows may be dropped before they are"
            " archived",
            queue["name"], queue["tenant_id"], setting, queue["days"],
        )  # fmt: skip
    if len(queues) > TOLD_QUEUES:
        logger.warning("so do %d more queues", len(queues) - TOLD_QUEUES)


@dataclass(frozen=True, slots=True)
class Run:
    """One run, while it has the lock."""

    lake: Lake
    database: ArchivedDatabase
    check_lock: CheckLock
    pruner: Pruner
    request: ArchiveRequest
    cut_off: datetime
    watcher: Watcher
    on_step: OnStep

    async def recover(self) -> None:
        """Finishes what an earlier run committed, and takes away what it did not."""
        for manifest in await asyncio.to_thread(self.lake.unpruned):
            logger.info("batch %s was not pruned by an earlier run", manifest.batch)
            self.watcher.finished(manifest, await self.pruner.prune(manifest))
        if deleted := await asyncio.to_thread(self.lake.delete_uncommitted):
            logger.info("%d batches that were never committed are deleted", deleted)

    async def move(self, table: Table) -> int:
        """Moves the old rows of a table; while one batch is pruned, the next is copied."""
        windows = await find_windows(self.database, table, self.cut_off, self.request.batch_rows)
        self.watcher.begin(table.name, sum(window.rows for window in windows))
        moved = 0
        committed: Manifest | None = None
        for window in windows:
            committed = await both(self._copy(table, window), self._prune(committed))
            moved += committed.parts[table.name].rows if committed else 0
        await self._prune(committed)
        return moved

    async def _copy(self, table: Table, window: Window) -> Manifest | None:
        frame = read_rows(self.lake.spark, self.request.database_url, table, window, self.cut_off)
        manifest = await asyncio.to_thread(self._prepare, table, frame)
        if manifest is None:
            self.watcher.copied(window.rows, None)
            return None
        await self.check_lock()
        await asyncio.to_thread(self.lake.commit, manifest)
        self.on_step("committed")
        self.watcher.copied(window.rows, manifest)
        return manifest

    def _prepare(self, table: Table, frame: DataFrame) -> Manifest | None:
        try:
            return prepare_batch(self.lake, {table: frame}, self.cut_off, self.on_step)
        except SPARK_ERRORS as error:
            raise PipelineStopped(f"A batch of {table.name} could not be written: {_reason(error)}") from error

    async def _prune(self, manifest: Manifest | None) -> None:
        if manifest is not None:
            self.watcher.pruned(manifest, await self.pruner.prune(manifest))


@contextmanager
def going_on_later() -> Iterator[None]:
    """Tells of whatever ends a run on its way that the next one goes on."""
    try:
        yield
    except (PipelineStopped, PipelineError) as error:
        raise PipelineStopped(f"{_sentence(str(error))} {GO_ON}") from error
    except SPARK_ERRORS as error:
        raise PipelineStopped(f"{_sentence(_reason(error))} {GO_ON}") from error
    except (DBAPIError, OSError, TimeoutError) as error:
        # The text of a driver's error may quote the URL.
        cause = getattr(error, "orig", None) or error
        reason = getattr(cause, "strerror", None) or type(cause).__name__
        raise PipelineStopped(f"The archive stopped: {_sentence(reason)} {GO_ON}") from error


def _reason(error: Exception) -> str:
    """What a worker said in a line of ours, or else the kind of the error: its text may hold anything."""
    told = re.search(r"PipelineError: (.+)", str(error))
    return told[1] if told else f"Spark failed ({type(error).__name__})"


def _sentence(text: str) -> str:
    return f"{text.rstrip('. ')}."


async def both(first: Awaitable[Manifest | None], second: Awaitable[None]) -> Manifest | None:
    """Does two things at once, and gives what came of the first; neither is left unfinished when the other fails."""
    made, done = await asyncio.gather(first, second, return_exceptions=True)
    for outcome in (made, done):
        if isinstance(outcome, BaseException):
            raise outcome
    return cast(Manifest | None, made)
