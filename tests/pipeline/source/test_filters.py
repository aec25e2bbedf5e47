"""What the database decides, it decides as Spark would."""

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNull, Not, StringContains

from app.pipeline.source.comparisons import Operator, Value
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.reader import KeyPartition, PushdownReader
from app.pipeline.source.reading import compare, read_batches, read_table
from app.pipeline.tables import HISTORY
from tests.pipeline.source.conftest import written
from tests.pipeline.source.rows import LAST_KEY, NASTY, Row

NOON = datetime(2026, 2, 28, 12, 0, 0, 1, tzinfo=UTC)
COMPARED: tuple[tuple[str, Operator, tuple[Value, ...]], ...] = (
    ("status", Operator.EQUAL, ("done",)),
    ("priority", Operator.LESS, (0,)),
    ("priority", Operator.LESS_OR_EQUAL, (-1,)),
    ("priority", Operator.GREATER, (1,)),
    ("priority", Operator.GREATER_OR_EQUAL, (2**31 - 1,)),
    ("priority", Operator.IN, (1, -(2**31))),
    ("payload_is_json", Operator.EQUAL, (True,)),
    ("payload_is_json", Operator.EQUAL, (False,)),
    ("expires_at", Operator.IS_NULL, ()),
    ("expires_at", Operator.IS_NOT_NULL, ()),
    ("created_at", Operator.GREATER_OR_EQUAL, (NOON,)),
    ("created_at", Operator.GREATER, (NOON,)),
    ("finished_at", Operator.LESS, (datetime(1970, 1, 1, tzinfo=UTC),)),
    ("finished_at", Operator.EQUAL, (datetime.max.replace(tzinfo=UTC),)),
    ("finished_at", Operator.LESS, (datetime.max.replace(tzinfo=UTC),)),
    ("dedupe_seconds", Operator.EQUAL, (0.1,)),
    ("dedupe_seconds", Operator.LESS, (1e-299,)),
    ("payload", Operator.EQUAL, (b"\x00",)),
    ("payload", Operator.IN, (b"'\\", b"{}")),
    ("queue", Operator.GREATER, ("a",)),
    ("queue", Operator.LESS, ("größer",)),
    ("last_error", Operator.GREATER_OR_EQUAL, ("Z",)),
    *(("last_worker", Operator.EQUAL, (text,)) for text in NASTY),
)
PYTHON: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}
SPARK_CONDITIONS = (
    "status = 'done' AND priority < 0",
    "priority IN (1, -2147483648, NULL)",
    "NOT payload_is_json",
    "created_at >= TIMESTAMP '2026-02-28 12:00:00.000001Z' AND expires_at IS NOT NULL",
    "dedupe_seconds < 1e-299D",
    "payload IN (X'275C', X'7B7D')",
    "last_error >= 'Z' AND last_error <=> 'plain'",
    "last_error <=> NULL",
    "id > 1990 AND id <= 2010 AND queue <> 'plain'",
    "queue = 'plain' OR priority = 0",
    "queue LIKE 'pl%'",
)


@pytest.mark.parametrize(("column", "asked", "values"), COMPARED)
def test_comparison(edges_url: str, column: str, asked: Operator, values: tuple[Value, ...]) -> None:
    where = [compare(HISTORY, column, asked, *values)]
    batches = read_batches(edges_url, HISTORY, KeyRange(1, LAST_KEY), columns=["id"], where=where)
    found = sorted(key for batch in batches for key in batch.column(0).to_pylist())
    assert found == [row["id"] for row in written(HISTORY).to_pylist() if meets(row, column, asked, values)]
    assert found


def meets(row: Row, column: str, asked: Operator, values: tuple[Value, ...]) -> bool:
    """The same question to a row in Python; text is in the order of its bytes."""
    if asked in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        return (row[column] is None) is (asked is Operator.IS_NULL)
    value, *others = (item.encode() if isinstance(item, str) else item for item in (row[column], *values))
    if value is None:
        return False
    return value in others if asked is Operator.IN else PYTHON[asked](value, others[0])


def test_filters_of_spark(mq: SparkSession, sqlite_url: str) -> None:
    """All in one job, each on a frame of its own."""
    options = {"url": sqlite_url, "table": "history", "partitions": "1", "pushdown": "true"}
    rows = mq.createDataFrame(written(HISTORY), HISTORY.spark_schema)
    pushed = ids_by_condition(lambda: mq.read.format("mq").options(**options).load())
    assert pushed == ids_by_condition(lambda: rows)


def ids_by_condition(frame: Callable[[], DataFrame]) -> dict[str, list[int]]:
    """The rows that meet each condition."""
    parts = [frame().where(text).select(F.lit(text).alias("condition"), "id") for text in SPARK_CONDITIONS]
    found = reduce(DataFrame.union, parts).groupBy("condition").agg(F.sort_array(F.collect_list("id")).alias("ids"))
    return {row.condition: row.ids for row in found.collect()}


def test_frame_may_be_used_again_with_other_filters(mq: SparkSession, sqlite_url: str) -> None:
    """What Spark itself gets wrong with filters that were pushed down."""
    frame = mq.read.format("mq").options(url=sqlite_url, table="history", partitions=1).load()
    few, others = frame.where("id <= 10"), frame.where("id > 2000")
    assert (few.union(others).count(), frame.count()) == (51, 2041)


def test_conditions_of_a_table_go_to_the_database(mq: SparkSession, sqlite_url: str) -> None:
    where = [compare(HISTORY, "created_at", Operator.GREATER, NOON), compare(HISTORY, "payload", Operator.EQUAL, b"{}")]
    frame = read_table(mq, sqlite_url, HISTORY, columns=["id"], where=where, partitions=1)
    rows = [row["id"] for row in written(HISTORY).to_pylist() if row["created_at"] > NOON and row["payload"] == b"{}"]
    assert sorted(row.id for row in frame.collect()) == rows


def test_what_the_database_decides_is_taken_off_spark(sqlite_url: str) -> None:
    reader = PushdownReader({"url": sqlite_url, "table": "history"}, HISTORY.spark_schema)
    taken: list[Filter] = [EqualTo(("queue",), "mail"), GreaterThan(("id",), 2000), IsNull(("result",))]
    left: list[Filter] = [Not(EqualTo(("queue",), "x")), StringContains(("queue",), "x"), EqualTo(("queue",), "\0")]
    assert list(reader.pushFilters([*taken, *left])) == left


def test_conditions_on_the_key_narrow_what_is_looked_at(sqlite_url: str) -> None:
    reader = PushdownReader({"url": sqlite_url, "table": "history"}, HISTORY.spark_schema)
    assert list(reader.pushFilters([GreaterThan(("id",), 1990), In(("id",), (3, 1995, 2003))])) == []
    [partition] = reader.partitions()
    assert isinstance(partition, KeyPartition)
    assert partition.keys == KeyRange(1991, 2003)
