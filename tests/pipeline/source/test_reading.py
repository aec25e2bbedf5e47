"""What is read is what was written, in every type, on every database."""

import asyncio
from collections.abc import Iterable

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlalchemy import text

from app.pipeline.source.comparisons import Operator
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.reading import compare, find_keys, read_batches, read_table
from app.pipeline.tables import ATTEMPTS, HISTORY, TABLES, TASKS, Table
from app.repository.factory import connect_dialect
from app.repository.schema import migrate
from tests.conftest import MakeDatabase
from tests.pipeline.source.conftest import written
from tests.pipeline.source.rows import LAST_KEY, NULLS_IN_FRONT


def digest(frame: DataFrame) -> tuple[int, int]:
    """The count of the rows, and the sum of their hashes."""
    hashes = F.sum(F.xxhash64(*frame.columns).cast("decimal(38, 0)"))
    [row] = frame.agg(F.count("*"), hashes).collect()
    return row[0], int(row[1])


def as_table(batches: Iterable[pa.RecordBatch], table: Table) -> pa.Table:
    return pa.Table.from_batches(list(batches), table.arrow_schema).sort_by(table.key)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_table_is_read_as_it_was_written(mq: SparkSession, edges_url: str, table: Table) -> None:
    frame = mq.read.format("mq").options(url=edges_url, table=table.name, partitions=3).load()
    assert frame.schema == table.database_schema
    assert digest(frame) == digest(mq.createDataFrame(written(table), table.spark_schema))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_batches_are_the_rows_that_were_written(edges_url: str, table: Table) -> None:
    keys = find_keys(edges_url, table)
    assert keys == KeyRange(1, LAST_KEY)
    batches = [batch for part in keys.split(3) for batch in read_batches(edges_url, table, part)]
    assert as_table(batches, table) == written(table)


def test_narrower_schema_reads_fewer_columns(mq: SparkSession, edges_url: str) -> None:
    frame = mq.read.format("mq").options(url=edges_url, table="history", partitions=2).schema("queue string, id bigint")
    expected = written(HISTORY).select(["queue", "id"])
    assert frame.load().toArrow().cast(expected.schema).sort_by("id") == expected


def test_columns_that_were_not_asked_for_are_not_read(edges_url: str) -> None:
    [batch, *_] = read_batches(edges_url, ATTEMPTS, KeyRange(1, 10), columns=["id", "success"])
    assert batch.schema == pa.schema([("id", pa.int64()), ("success", pa.bool_())])


def test_batches_of_a_range_under_conditions(edges_url: str) -> None:
    where = [compare(ATTEMPTS, "worker_id", Operator.IS_NOT_NULL), compare(ATTEMPTS, "success", Operator.EQUAL, True)]
    keys = KeyRange(NULLS_IN_FRONT - 10, NULLS_IN_FRONT + 10)
    found = as_table(read_batches(edges_url, ATTEMPTS, keys, where=where), ATTEMPTS)
    expected = [
        row for row in written(ATTEMPTS).to_pylist()
        if keys.first <= row["id"] <= keys.last and row["worker_id"] is not None and row["success"]
    ]  # fmt: skip
    assert found.to_pylist() == expected


def test_batches_stay_small(edges_url: str) -> None:
    """A range is handed out piece by piece, not as one batch."""
    pieces = [batch.num_rows for batch in read_batches(edges_url, HISTORY, KeyRange(1, LAST_KEY))]
    assert sum(pieces) == NULLS_IN_FRONT + 41
    assert len(pieces) > 1 or pieces[0] < 20_000


def test_empty_table_has_the_schema(mq: SparkSession, make_database: MakeDatabase) -> None:
    url = make_database("sqlite")
    asyncio.run(_change(url))
    frame = read_table(mq, url, TASKS)
    assert (frame.count(), frame.schema) == (0, TASKS.database_schema)


def test_done_tasks_that_only_hold_a_key_are_no_tasks(make_database: MakeDatabase) -> None:
    url = make_database("sqlite")
    asyncio.run(_change(url, TOMBSTONE))
    assert find_keys(url, TASKS) == KeyRange(1, 1)
    assert list(read_batches(url, TASKS, KeyRange(1, 1))) == []


TOMBSTONE = """
INSERT INTO mq_tasks (tenant_id, queue_id, tombstone_id, queue, topic, type, payload, payload_is_json, content_type,
  meta, size, priority, dedupe_key, dedupe_seconds, attempts, max_attempts, available_at, created_at, status,
  dedupe_until, updated_at)
VALUES ('t', 1, 'x', 'q', 'q', '', x'', true, '', '{}', 1, 1, 'key', 60, 1, 1, 0, 0, 'done', 1, 0)
"""


async def _change(database_url: str, *statements: str) -> None:
    dialect = connect_dialect(database_url)
    await migrate(dialect)
    async with dialect.connect(write=True) as connection:
        for statement in statements:
            await connection.execute(text(statement))
        await connection.commit()
    await dialect.close()
