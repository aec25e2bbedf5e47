"""A database that goes away in the middle of a run: one line, exit code 1, and the next run goes on."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import make_url, text

from app.cli import main
from app.pipeline.archive.archive import GO_ON, ArchiveRequest, archive
from app.pipeline.lake.batches import prepare_batch
from app.repository.factory import connect_dialect
from tests.conftest import MakeDatabase
from tests.pipeline.archive.ledger import check_nothing_lost, open_ledger, reopen_ledger
from tests.pipeline.archive.requests import OLD, OLDER_THAN
from tests.servers import Server

CONNECTIONS = {
    "postgresql": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM performance_schema.processlist WHERE db = database() AND id <> connection_id()",
}


class Stopped(Exception):
    """What ends a run where the test wants it."""


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """The command sends the logs elsewhere, for the whole process."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[str], tuple[int, list[str]]]:
    """Runs the command on a database, and gives its exit code and what it told."""

    def run(url: str) -> tuple[int, list[str]]:
        code = main(["pipeline", "archive", "--lake", f"{tmp_path}/lake", "--older-than", "7d", "--database-url", url])
        return code, [line for line in capfd.readouterr().err.splitlines() if line.startswith("leasemq: ")]

    return run


@pytest.fixture
def before_writing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Has something done once, when the first batch is about to be written."""

    def before(do: Callable[[], None]) -> None:
        real, left = prepare_batch, [do]

        def prepare(*arguments: Any) -> Any:
            if left:
                left.pop()()
            return real(*arguments)

        monkeypatch.setattr("app.pipeline.archive.archive.prepare_batch", prepare)

    return before


@pytest.fixture(params=["postgresql", "mysql"])
def url(request: pytest.FixtureRequest, make_database: MakeDatabase) -> str:
    url = make_database(request.param)
    asyncio.run(fill(url))
    return url


def test_connections_that_are_cut(spark: SparkSession, url: str, tmp_path: Path, run: Any, before_writing: Any) -> None:
    before_writing(lambda: asyncio.run(cut(url)))
    code, [line] = run(url)
    assert (code, line) == (1, f"leasemq: The connection that held the lock on the database was lost. {GO_ON}")
    assert run(url) == (0, [])
    asyncio.run(check(spark, url, f"{tmp_path}/lake"))


def test_server_that_goes_away_and_comes_back(
    spark: SparkSession, own_server: Server, tmp_path: Path, run: Any, before_writing: Any
) -> None:
    url = own_server.create_database("stopped")
    asyncio.run(fill(url))
    before_writing(own_server.kill)
    code, [line] = run(url)
    assert code == 1
    assert line.startswith("leasemq: A batch of history could not be written: the database cannot be read: ")
    assert line.endswith(GO_ON)
    code, [line] = run(url)
    assert (code, line.startswith("leasemq: the database cannot be read: ")) == (2, True)
    own_server.start()
    assert run(url) == (0, [])
    asyncio.run(check(spark, url, f"{tmp_path}/lake"))


def test_what_is_finished_of_an_earlier_run_is_told(
    spark: SparkSession, make_database: MakeDatabase, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, lake = make_database("sqlite"), f"{tmp_path}/lake"
    asyncio.run(fill(url))

    def stop(step: str) -> None:
        if step == "committed":
            raise Stopped

    with pytest.raises(Stopped):
        asyncio.run(archive(spark, ArchiveRequest(url, lake, OLDER_THAN), on_step=stop))
    assert main(["pipeline", "archive", "--lake", lake, "--older-than", "7d", "--database-url", url]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "finished of an earlier run: 10 rows moved", "history: 0 rows moved", "attempts: 10 rows moved",
    ]  # fmt: skip


async def fill(url: str) -> None:
    ledger = await open_ledger(url)
    await ledger.finish_many(10, OLD)
    await ledger.dialect.close()


async def check(spark: SparkSession, url: str, lake: str) -> None:
    ledger = reopen_ledger(url, connect_dialect(url))
    await check_nothing_lost(spark, ledger, lake)
    await ledger.dialect.close()


async def cut(url: str) -> None:
    """Ends every connection to the database."""
    dialect = connect_dialect(url)
    async with dialect.engine.connect() as connection:
        found = (await connection.execute(text(CONNECTIONS[make_url(url).drivername]))).all()
        assert found
        for [process] in found if dialect.name == "mysql" else ():
            await connection.execute(text(f"KILL {process}"))
    await dialect.close()
