"""A kill at any step, with writers at work: a second run finishes, and nothing is lost or doubled."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.pipeline.archive.archive import archive
from tests.conftest import DIALECTS, MakeDatabase
from tests.pipeline.archive.ledger import Ledger, check_nothing_lost, open_ledger, write_on
from tests.pipeline.archive.requests import OLD, make_request
from tests.pipeline.java import SHORT_LIVED

ROOT = Path(__file__).parents[3]


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


class Victims:
    """Processes to be killed: while one is at work, the next one starts its session."""

    def __init__(self) -> None:
        self._next: Process | None = None

    async def kill(self, step: str, urls: Sequence[str], lakes: Path) -> None:
        """Has archivers run up to a step, where their process is ended; returns when it is."""
        process = self._next or await _start()
        assert process.stdin is not None
        process.stdin.write(json.dumps([step, str(lakes), list(urls)]).encode() + b"\n")
        assert await process.wait() == -signal.SIGKILL
        self._next = await _start()

    async def close(self) -> None:
        if self._next is not None:
            self._next.kill()
            await self._next.wait()


async def _start() -> Process:
    command = [sys.executable, "-m", "tests.pipeline.archive.killed"]
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=os.environ | SHORT_LIVED, stdin=PIPE)


@pytest.fixture(scope="module")
async def victims() -> AsyncIterator[Victims]:
    victims = Victims()
    yield victims
    await victims.close()


# One session for three databases, except where the moment is too short to wait in it for the others.
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_kill_while_files_are_written(
    spark: SparkSession, ledgers: list[Ledger], lakes: Path, victims: Victims, dialect: str
) -> None:
    await survive("writing", spark, [ledger for ledger in ledgers if ledger.dialect.name == dialect], lakes, victims)


@pytest.mark.parametrize("step", ["written", "verified", "committed", "pruning", "pruned"])
async def test_kill_at_a_step(
    spark: SparkSession, ledgers: list[Ledger], lakes: Path, victims: Victims, step: str
) -> None:
    await survive(step, spark, ledgers, lakes, victims)


async def survive(step: str, spark: SparkSession, ledgers: Sequence[Ledger], lakes: Path, victims: Victims) -> None:
    """Kills archivers of some databases at a step, runs them again, and looks for every row."""
    for ledger in ledgers:
        await ledger.finish_many(300, OLD)
        await ledger.bury_many(20, OLD)
    async with writing(ledgers):
        await victims.kill(step, [ledger.url for ledger in ledgers], lakes)
        await asyncio.gather(*(archive(spark, make_request(lakes, ledger.url, batch_rows=1000)) for ledger in ledgers))
    for ledger in ledgers:
        await check_nothing_lost(spark, ledger, make_request(lakes, ledger.url).lake_url)


@asynccontextmanager
async def writing(ledgers: Sequence[Ledger]) -> AsyncIterator[None]:
    """Writers that are at work meanwhile."""
    stopped = asyncio.Event()
    writers = [asyncio.create_task(write_on(ledger, OLD, stopped)) for ledger in ledgers]
    try:
        yield
    finally:
        stopped.set()
        await asyncio.gather(*writers)
