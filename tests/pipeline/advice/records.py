"""Rows of the pipeline's tables, of which a test says only what matters to it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, TASKS, Kind, Table

T0 = datetime(2024, 2, 29, 12, 0, 0, tzinfo=UTC)
EMPTY: dict[Kind, object] = {
    Kind.TEXT: "", Kind.BYTES: b"", Kind.INTEGER: 0, Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.BOOLEAN: False,
    Kind.INSTANT: T0,
}  # fmt: skip
DEFAULTS: dict[str, object] = {"tenant_id": "default", "queue": "mail", "max_attempts": 5, "attempts": 1}

Fields = dict[str, Any]


def at(seconds: float) -> datetime:
    """So long after noon."""
    return T0 + timedelta(seconds=seconds)


def done(task_id: str, due: float, start: float, end: float, **fields: Any) -> Fields:
    """A task that was done at its first attempt, unless the fields say otherwise."""
    return {
        "task_id": task_id, "status": "done", "created_at": at(due), "available_at": at(due),
        "first_leased_at": at(start), "finished_at": at(end),
    } | fields  # fmt: skip


def dead(task_id: str, due: float, end: float, **fields: Any) -> Fields:
    """A task that died."""
    return {
        "task_id": task_id, "reason": "boom", "created_at": at(due), "available_at": at(due),
        "first_leased_at": at(due), "failed_at": at(end), "attempts": 5,
    } | fields  # fmt: skip


def waiting(task_id: str, due: float, **fields: Any) -> Fields:
    """A task that nobody has leased yet."""
    return {"id": task_id, "status": "ready", "created_at": at(due), "available_at": at(due), "attempts": 0} | fields


def attempt(task_id: str, start: float, end: float, **fields: Any) -> Fields:
    """A first attempt that succeeded, unless the fields say otherwise."""
    return {
        "task_id": task_id, "attempt_no": 1, "started_at": at(start), "finished_at": at(end), "success": True,
    } | fields  # fmt: skip


def lost(task_id: str, start: float, end: float, **fields: Any) -> Fields:
    """An attempt whose lease ran out."""
    return attempt(task_id, start, end, success=False, reason="lease expired") | fields


def history_frame(spark: SparkSession, rows: Sequence[Fields]) -> DataFrame:
    return _frame(spark, HISTORY, rows)


def attempts_frame(spark: SparkSession, rows: Sequence[Fields]) -> DataFrame:
    return _frame(spark, ATTEMPTS, rows)


def dead_frame(spark: SparkSession, rows: Sequence[Fields]) -> DataFrame:
    return _frame(spark, DLQ, rows)


def live_frame(spark: SparkSession, rows: Sequence[Fields]) -> DataFrame:
    return _frame(spark, TASKS, rows)


def _frame(spark: SparkSession, table: Table, rows: Sequence[Fields]) -> DataFrame:
    names = {column.name for column in table.columns}
    assert all(names >= row.keys() for row in rows)
    defaults = {column.name: None if column.nullable else EMPTY[column.kind] for column in table.columns}
    defaults |= {name: value for name, value in DEFAULTS.items() if name in names}
    filled = pa.Table.from_pylist([defaults | row for row in rows], schema=table.arrow_schema)
    return spark.createDataFrame(filled, table.spark_schema)
