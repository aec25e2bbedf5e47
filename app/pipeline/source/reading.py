"""The tables for those who read them from Python: as a DataFrame, or as Arrow batches without Spark."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from app.pipeline.source.comparisons import Comparison, Operator, Value, in_column
from app.pipeline.source.factory import find_database
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.scan import Scan
from app.pipeline.source.where import write_where
from app.pipeline.tables import Column, Table


def read_table(
    spark: SparkSession,
    database_url: str,
    table: Table,
    *,
    columns: Sequence[str] | None = None,
    where: Sequence[Comparison] = (),
    partitions: int | None = None,
) -> DataFrame:
    """A table of the database, or some of its columns and of its rows, chosen by the database.

    Raises `PipelineError` at once for a database that cannot be read, instead of Spark's error at the first action.
    """
    from app.pipeline.datasource import register  # noqa: PLC0415

    find_database(database_url).check()
    register(spark)
    chosen = _columns(table, columns)
    schema = StructType([column.spark_field for column in chosen])
    reader = spark.read.format("mq").schema(schema).option("url", database_url).option("table", table.name)
    reader = reader.option("where", write_where(where))
    return (reader if partitions is None else reader.option("partitions", partitions)).load()


def find_keys(database_url: str, table: Table) -> KeyRange:
    """The least and the greatest key of a table; empty if there are no rows."""
    return find_database(database_url).key_range(table)


def read_batches(
    database_url: str,
    table: Table,
    keys: KeyRange,
    *,
    columns: Sequence[str] | None = None,
    where: Sequence[Comparison] = (),
    required: frozenset[str] = frozenset(),
) -> Iterator[pa.RecordBatch]:
    """The rows in a range of keys that meet all conditions, in one short transaction, without Spark.

    Columns that are `required` are said to be never NULL in the batches' schema; raises `PipelineError` if one is.
    """
    scan = Scan(table, _columns(table, columns), tuple(where), required)
    return map(scan.checked, find_database(database_url).read(scan, keys))


def compare(table: Table, column: str, operator: Operator, *values: Value) -> Comparison:
    """A condition for `read_batches`. Raises `NotExpressible` for a value that the column cannot be compared with."""
    return Comparison(in_column(table.columns, column), operator, values)


def _columns(table: Table, names: Sequence[str] | None) -> tuple[Column, ...]:
    return table.columns if names is None else tuple(in_column(table.columns, name) for name in names)
