"""Rows for lakes of tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from app.pipeline.tables import Kind, Table

START = datetime(2026, 3, 1, 23, 59, 59, 999998, tzinfo=UTC)
SAMPLES: dict[Kind, Any] = {
    Kind.TEXT: "naïve 🐝",
    Kind.BYTES: bytes(range(256)),
    Kind.INTEGER: 2**31 - 1,
    Kind.LONG: -(2**63),
    Kind.DOUBLE: 0.1,
    Kind.BOOLEAN: True,
}


def make_row(table: Table, number: int) -> dict[str, Any]:
    """A row whose every column has a value, or NULL where it may be in every second row."""
    values = {
        column.name: None if column.nullable and number % 2 else SAMPLES.get(column.kind, START)
        for column in table.columns
    }
    finished_at = "failed_at" if "failed_at" in values else "finished_at"
    return {**values, finished_at: START + timedelta(microseconds=number), table.key: number}


def make_frame(spark: SparkSession, table: Table, numbers: range) -> DataFrame:
    return spark.createDataFrame([make_row(table, number) for number in numbers], table.spark_schema)
