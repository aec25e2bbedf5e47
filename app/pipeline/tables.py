"""The tables that the pipeline reads and the lake keeps: names, columns and types, once for every reader and writer.

The hashes of lease tokens stay in the database: they are nobody's data.
"""

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)


class Kind(Enum):
    """What a column holds, whatever the database calls it."""

    TEXT = "text"
    BYTES = "bytes"
    INTEGER = "integer"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    INSTANT = "instant"


SPARK_TYPES: dict[Kind, DataType] = {
    Kind.TEXT: StringType(),
    Kind.BYTES: BinaryType(),
    Kind.INTEGER: IntegerType(),
    Kind.LONG: LongType(),
    Kind.DOUBLE: DoubleType(),
    Kind.BOOLEAN: BooleanType(),
    Kind.INSTANT: TimestampType(),
}
ARROW_TYPES: dict[Kind, pa.DataType] = {
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.INTEGER: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INSTANT: pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, of one kind."""

    name: str
    kind: Kind
    nullable: bool = False

    @property
    def spark_field(self) -> StructField:
        return StructField(self.name, SPARK_TYPES[self.kind], self.nullable)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the pipeline sees it."""

    name: str
    # Its name in the database.
    relation: str
    # The integer primary key: rows are read in ranges of it.
    key: str
    columns: tuple[Column, ...]
    # Rows of the relation that are no rows of the table are left out by this condition.
    condition: str = ""

    @property
    def spark_schema(self) -> StructType:
        return StructType([StructField(column.name, SPARK_TYPES[column.kind]) for column in self.columns])

    @property
    def database_schema(self) -> StructType:
        """As `spark_schema`, but what the database never leaves NULL is said to be so: Spark need not look then."""
        return StructType([column.spark_field for column in self.columns])

    @property
    def required(self) -> frozenset[str]:
        """The columns that the database never leaves NULL."""
        return frozenset(column.name for column in self.columns if not column.nullable)

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, ARROW_TYPES[column.kind]) for column in self.columns])


DESCRIBED = (
    Column("queue", Kind.TEXT),
    Column("topic", Kind.TEXT),
    Column("publish_id", Kind.TEXT, nullable=True),
    Column("type", Kind.TEXT),
    Column("payload", Kind.BYTES),
    Column("payload_is_json", Kind.BOOLEAN),
    Column("content_type", Kind.TEXT),
    Column("meta", Kind.TEXT),
    Column("priority", Kind.INTEGER),
    Column("dedupe_key", Kind.TEXT, nullable=True),
    Column("dedupe_seconds", Kind.DOUBLE),
    Column("attempts", Kind.INTEGER),
    Column("max_attempts", Kind.INTEGER),
    Column("available_at", Kind.INSTANT),
    Column("expires_at", Kind.INSTANT, nullable=True),
    Column("timeout_seconds", Kind.DOUBLE, nullable=True),
    Column("first_leased_at", Kind.INSTANT, nullable=True),
    Column("last_worker", Kind.TEXT, nullable=True),
    Column("last_error", Kind.TEXT, nullable=True),
    Column("last_error_at", Kind.INSTANT, nullable=True),
    Column("created_at", Kind.INSTANT),
)

TASKS = Table(
    "tasks",
    relation="mq_tasks",
    key="seq",
    columns=(
        Column("seq", Kind.LONG),
        Column("tenant_id", Kind.TEXT),
        Column("id", Kind.TEXT),
        *DESCRIBED,
        Column("status", Kind.TEXT),
        Column("lease_owner", Kind.TEXT, nullable=True),
        Column("lease_until", Kind.INSTANT, nullable=True),
        Column("leased_at", Kind.INSTANT, nullable=True),
        Column("updated_at", Kind.INSTANT),
    ),
    # What is done and still here only holds its dedupe key.
    condition="status <> 'done'",
)
HISTORY = Table(
    "history",
    relation="mq_task_history",
    key="id",
    columns=(
        Column("id", Kind.LONG),
        Column("tenant_id", Kind.TEXT),
        Column("task_id", Kind.TEXT),
        *DESCRIBED,
        Column("status", Kind.TEXT),
        Column("result", Kind.TEXT, nullable=True),
        Column("finished_at", Kind.INSTANT),
        Column("keep_until", Kind.INSTANT, nullable=True),
    ),
)
ATTEMPTS = Table(
    "attempts",
    relation="mq_task_attempts",
    key="id",
    columns=(
        Column("id", Kind.LONG),
        Column("tenant_id", Kind.TEXT),
        Column("task_id", Kind.TEXT),
        Column("queue", Kind.TEXT),
        Column("type", Kind.TEXT),
        Column("attempt_no", Kind.INTEGER),
        Column("worker_id", Kind.TEXT, nullable=True),
        Column("started_at", Kind.INSTANT),
        Column("finished_at", Kind.INSTANT),
        Column("success", Kind.BOOLEAN),
        Column("reason", Kind.TEXT, nullable=True),
    ),
)
DLQ = Table(
    "dlq",
    relation="mq_task_dlq",
    key="id",
    columns=(
        Column("id", Kind.LONG),
        Column("tenant_id", Kind.TEXT),
        Column("task_id", Kind.TEXT),
        *DESCRIBED,
        Column("reason", Kind.TEXT),
        Column("failed_at", Kind.INSTANT),
    ),
)
TABLES = {table.name: table for table in (TASKS, HISTORY, ATTEMPTS, DLQ)}
