"""What cannot be read is told in a line, and no password with it."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from sqlalchemy import make_url, text

from app.pipeline.errors import PipelineError
from app.pipeline.source.database import SCHEMA_REVISION
from app.pipeline.source.factory import find_database
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.options import columns_of
from app.pipeline.source.reader import open_reader
from app.pipeline.source.reading import read_batches, read_table
from app.pipeline.tables import HISTORY, TASKS, Kind
from app.repository.factory import connect_dialect
from app.repository.schema import head_revision, migrate
from tests.conftest import MakeDatabase
from tests.filling import Filler
from tests.pipeline.source.rows import EDGES
from tests.servers.ports import LOOPBACK, free_port

PASSWORD = "s3cr3t/p@ss"
QUOTED = "s3cr3t%2Fp%40ss"


def test_revision_is_the_one_that_the_migrations_lead_to() -> None:
    assert head_revision() == SCHEMA_REVISION


@pytest.mark.parametrize("options", [{}, {"table": "task"}, {"table": "tasks; DROP TABLE mq_tasks"}])
def test_unknown_table(mq: SparkSession, options: dict[str, str]) -> None:
    with pytest.raises(PySparkException, match=r"no such table: .*; there are tasks, history, attempts, dlq"):
        mq.read.format("mq").options(url="sqlite:///x.db", **options).load()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tabel": "x"}, "no such option: tabel; there are url, table, where, partitions, pushdown"),
        ({"url": ""}, "the option url is missing"),
        ({"url": "oracle://host/db"}, "no such kind of database: oracle"),
        ({"url": "nonsense"}, "the database URL cannot be read"),
        ({"url": "postgresql://host:port/db"}, "the database URL cannot be read"),
        ({"partitions": "0"}, "the option partitions must be a whole number above 0, not '0'"),
        ({"pushdown": "maybe"}, "the option pushdown must be true or false, not 'maybe'"),
        ({"where": "queue = 'mail'"}, "the option where cannot be read"),
        ({"where": '[["colour", "=", "red"]]'}, "there is no column colour"),
        ({"where": '[["queue", "=", 5]]'}, "queue is never compared with int"),
        ({"where": '[["queue", "~", "x"]]'}, "'~' is not a valid Operator"),
        ({"where": '[["queue", "="]]'}, "= takes 1 values, not 0"),
        ({"partitions": "many"}, "the option partitions must be a whole number above 0, not 'many'"),
        ({"url": "sqlite:////nowhere/mq.db"}, "there is no file /nowhere/mq.db"),
    ],
)
def test_wrong_option(options: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        open_reader({"url": "sqlite:///x.db", "table": "tasks"} | options, TASKS.spark_schema)


def test_spark_repeats_what_is_wrong(mq: SparkSession) -> None:
    with pytest.raises(PySparkException, match="there is no file /nowhere/"):
        mq.read.format("mq").options(url="sqlite:////nowhere/mq.db", table="tasks").load().count()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (StructType().add("id", "integer"), "the column id of history is bigint, not int"),
        (StructType().add("id", "long").add("x", "integer"), "has no column x; it has id"),
        (StructType().add("result", "string", nullable=False), "the column result of history may be NULL"),
    ],
)
def test_schema_of_another_table(schema: StructType, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        columns_of(HISTORY, schema)


@pytest.mark.parametrize("dialect", ["postgresql", "mysql"])
def test_unreachable_database(mq: SparkSession, dialect: str) -> None:
    url = f"{dialect}://someone:{QUOTED}@{LOOPBACK}:{free_port()}/leasemq"
    with pytest.raises(PipelineError, match="the database cannot be read: ") as told:
        read_table(mq, url, TASKS)
    assert "\n" not in str(told.value)
    assert PASSWORD not in str(told.value)
    assert QUOTED not in str(told.value)


def test_file_that_is_no_database(mq: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("no database at all, whatever its name says" * 100)
    with pytest.raises(PipelineError, match="the database cannot be read: file is not a database"):
        read_table(mq, f"sqlite:///{tmp_path}/notes.db", TASKS)


def test_looking_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no file"):
        find_database(f"sqlite:///{tmp_path}/new.db").check()
    assert list(tmp_path.iterdir()) == []


def test_database_of_another_revision(mq: SparkSession, database_url: str) -> None:
    asyncio.run(_to_revision(database_url, "0002"))
    with pytest.raises(PipelineError, match="is at schema revision 0002, this version of LeaseMQ reads"):
        read_table(mq, database_url, TASKS)


def test_database_of_somebody_else(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
    connection.close()
    with pytest.raises(PipelineError, match="is at schema revision nothing"):
        find_database(f"sqlite:///{tmp_path}/other.db").check()


@pytest.mark.parametrize("dialect", ["postgresql", "mysql"])
def test_empty_database(dialect: str, make_database: MakeDatabase) -> None:
    with pytest.raises(PipelineError, match="is at schema revision nothing"):
        find_database(make_database(dialect)).check()


def test_plan_does_not_show_the_password(
    mq: SparkSession, make_database: MakeDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_database("postgresql")
    asyncio.run(_to_revision(url, "head"))
    # The server asks for none, and passes over one that is given.
    url = make_url(url).set(password=PASSWORD).render_as_string(hide_password=False)
    frame = mq.read.format("mq").options(url=url, table="history").load()
    frame = frame.where("id > 1 AND status = 'done'")
    frame.explain("extended")
    frame.explain("formatted")
    told = capsys.readouterr().out
    assert "mq" in told
    assert PASSWORD not in told
    assert QUOTED not in told


def test_password_is_not_in_what_is_printed_of_a_database() -> None:
    assert PASSWORD not in repr(find_database(f"postgresql://someone:{QUOTED}@host/db"))


LOST = {
    "postgresql": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasemq-pipeline'",
    "mysql": "SELECT id FROM performance_schema.processlist WHERE info LIKE 'SELECT id, result FROM mq_task_history%'",
}


@pytest.mark.parametrize("dialect", ["postgresql", "mysql"])
def test_connection_that_is_lost_on_the_way_is_no_end_of_the_rows(
    make_database: MakeDatabase, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All rows by one statement, so that there is a middle of it.
    monkeypatch.setattr("app.pipeline.source.mysql_parts.PART_BYTES", 2**40)
    url = make_database(dialect)
    asyncio.run(_fill(url))
    batches = read_batches(url, HISTORY, KeyRange(1, 10_000), columns=["id", "result"])
    next(batches)
    asyncio.run(_cut(url, dialect))
    with pytest.raises(PipelineError, match="the database cannot be read: "):
        list(batches)


async def _to_revision(database_url: str, revision: str) -> None:
    dialect = connect_dialect(database_url)
    await migrate(dialect, revision)
    await dialect.close()


async def _fill(database_url: str) -> None:
    dialect = connect_dialect(database_url)
    await migrate(dialect)
    filler = Filler(dialect, "t", EDGES[Kind.INSTANT][3])
    await filler.prepare(2_000)
    await filler.history("q", 2_000, result="repeat('x', 100000)")
    await dialect.close()


async def _cut(database_url: str, dialect_name: str) -> None:
    dialect = connect_dialect(database_url)
    async with dialect.engine.connect() as connection:
        rows = (await connection.execute(text(LOST[dialect_name]))).all()
        assert rows
        for [process] in rows if dialect_name == "mysql" else ():
            await connection.execute(text(f"KILL {process}"))
    await dialect.close()
