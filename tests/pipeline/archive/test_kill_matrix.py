"""A kill at any step, with writers at work: a second run finishes, and nothing is lost or doubled."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.pipeline.archive.archive import archive
from tests.conftest import DIALECTS, MakeDatabase
from tests.pipeline.archive.ledger import Ledger, check_nothing_lost, open_ledger, write_on
from tests.pipeline.archive.requests import OLD, make_request

ROOT = Path(__file__).parents[3]
# A session that lives for seconds is started sooner without the optimising compiler.
SHORT_LIVED = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@pytest.fixture(scope="module")
async def ledgers(make_database: MakeDatabase) -> AsyncIterator[list[Ledger]]:
    """A database of each dialect."""
    async with AsyncExitStack() as stack:
        opened = [await open_ledger(make_database(dialect)) for dialect in DIALECTS]
        for ledger in opened:
            stack.push_async_callback(ledger.dialect.close)
        yield opened


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lakes")


# One session for three databases, except where the moment is too short to wait in it for the others.
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_kill_while_files_are_written(
    spark: SparkSession, ledgers: list[Ledger], lakes: Path, dialect: str
) -> None:
    await survive("writing", spark, [ledger for ledger in ledgers if ledger.dialect.name == dialect], lakes)


@pytest.mark.parametrize("step", ["written", "verified", "committed", "pruning", "pruned"])
async def test_kill_at_a_step(spark: SparkSession, ledgers: list[Ledger], lakes: Path, step: str) -> None:
    await survive(step, spark, ledgers, lakes)


async def survive(step: str, spark: SparkSession, ledgers: Sequence[Ledger], lakes: Path) -> None:
    """Kills archivers of some databases at a step, runs them again, and looks for every row."""
    for ledger in ledgers:
        await ledger.finish_many(300, OLD)
        await ledger.bury_many(20, OLD)
    async with writing(ledgers):
        await kill(step, ledgers, lakes)
        await asyncio.gather(*(archive(spark, make_request(lakes, ledger.url, batch_rows=1000)) for ledger in ledgers))
    for ledger in ledgers:
        await check_nothing_lost(spark, ledger, make_request(lakes, ledger.url).lake_url)


async def kill(step: str, ledgers: Sequence[Ledger], lakes: Path) -> None:
    command = [sys.executable, "-m", "tests.pipeline.archive.killed", step, str(lakes)]
    urls = [ledger.url for ledger in ledgers]
    process = await asyncio.create_subprocess_exec(*command, *urls, cwd=ROOT, env=os.environ | SHORT_LIVED)
    assert await process.wait() == -signal.SIGKILL


@asynccontextmanager
async def writing(ledgers: Sequence[Ledger]) -> AsyncIterator[None]:
    """Writers that are at work meanwhile."""
    stopped = asyncio.Event()
    writers = [asyncio.create_task(write_on(ledger, OLD, stopped)) for ledger in ledgers]
    yield
    stopped.set()
    await asyncio.gather(*writers)
