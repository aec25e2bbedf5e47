"""Rows of the lake's tables, of which a test says only what it is about."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from app.pipeline.report.frames import ended_attempts, finished_tasks
from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, TASKS, Kind, Table

T0 = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PLAIN: dict[Kind, Any] = {
    Kind.TEXT: "x",
    Kind.BYTES: b"{}",
    Kind.INTEGER: 1,
    Kind.LONG: 1,
    Kind.DOUBLE: 0.0,
    Kind.BOOLEAN: True,
    Kind.INSTANT: T0,
}
Given = Iterable[Mapping[str, Any]]


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def frame(spark: SparkSession, table: Table, rows: Given) -> DataFrame:
    """A frame of the table; what a row does not say is NULL where that may be, else plain."""
    plain = {column.name: None if column.nullable else PLAIN[column.kind] for column in table.columns}
    filled = []
    for place, row in enumerate(rows):
        unknown = row.keys() - plain.keys()
        assert not unknown, f"{table.name} has no {unknown}"
        filled.append(tuple({**plain, table.key: place, **row}.values()))
    return spark.createDataFrame(filled, table.spark_schema)


def history(spark: SparkSession, rows: Given) -> DataFrame:
    return frame(spark, HISTORY, ({"status": "done", **row} for row in rows))


def dead_letters(spark: SparkSession, rows: Given) -> DataFrame:
    return frame(spark, DLQ, rows)


def attempts(spark: SparkSession, rows: Given) -> DataFrame:
    """Attempts as the figures see them."""
    return ended_attempts(frame(spark, ATTEMPTS, rows))


def live(spark: SparkSession, rows: Given) -> DataFrame:
    return frame(spark, TASKS, ({"status": "ready", **row} for row in rows))


def finished(spark: SparkSession, done: Given, dead: Given = ()) -> DataFrame:
    """Finished tasks as the figures see them."""
    return finished_tasks(history(spark, done), dead_letters(spark, dead))


def rows_of(found: DataFrame) -> list[dict[str, Any]]:
    return list(found.toArrow().to_pylist())
