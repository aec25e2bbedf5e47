"""From a file to tasks: its rows, a mapping of its columns, and who each row is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from app.pipeline.errors import PipelineError
from app.pipeline.messages import SPARK_ERRORS, one_line
from app.pipeline.sink.columns import COLUMNS, INSTANT, NUMBER, WHOLE
from app.pipeline.sink.encoding import is_json
from app.pipeline.sink.identity import AS_JSON, with_digest
from app.pipeline.sink.job import IDENTITY, Rows

FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
COMPRESSED = (".gz", ".bz2")
# A line of JSON as it stands in the file.
LINE = "_line"
# Where Spark puts a line that is no object, and a row of CSV that does not fit its header.
CORRUPT = "_corrupt_record"
# As RFC 4180 has it: a quote is doubled, and a quoted field may go over several lines.
CSV = {"header": "true", "multiLine": "true", "escape": '"'}
SHOWN_CHARACTERS = 60
OBJECT = AS_JSON | {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Which columns become which fields of a task; a payload that is not mapped is the whole row as an object."""

    fields: Mapping[str, str]
    payload_columns: Sequence[str] = ()
    key: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that are named."""
        return [*self.fields.values(), *self.payload_columns, *([self.key] if self.key else [])]


def load_rows(spark: SparkSession, path: str, mapping: FieldMap) -> Rows:
    """The tasks of a file; raises `PipelineError` for a file or a mapping that cannot be."""
    try:
        rows = read_file(spark, path)
        if rows.columns == [LINE] and rows.isEmpty():
            # What columns no lines have is for the mapping to say.
            rows = rows.select(LINE, *(F.lit("").alias(name) for name in dict.fromkeys(mapping.columns)))
        check_mapping(rows, mapping)
        return Rows(to_tasks(rows, mapping), repeated=mapping.key is None)
    except SPARK_ERRORS as error:
        raise PipelineError(f"{path} cannot be read: {one_line(error)}") from error


def read_file(spark: SparkSession, path: str) -> DataFrame:
    """The rows of a Parquet, CSV or JSON Lines file, or of a folder or pattern of such files."""
    kind = _format(path)
    if kind == "parquet":
        return spark.read.parquet(path)
    if kind == "csv":
        return _read_csv(spark, path)
    return _read_lines(spark, path)


def to_tasks(rows: DataFrame, mapping: FieldMap) -> DataFrame:
    """The fields of an enqueue request, and the row's identity: its key, or a digest of the fields."""
    fields = [_field(rows, name, column).alias(name) for name, column in mapping.fields.items()]
    if "payload" not in mapping.fields:
        fields.append(_object(rows, mapping.payload_columns).alias("payload"))
    if mapping.key is None:
        return with_digest(rows.select(*fields), IDENTITY)
    return rows.select(*fields, _column(mapping.key).cast("string").alias(IDENTITY))


def check_mapping(rows: DataFrame, mapping: FieldMap) -> None:
    """Raises `PipelineError` for a field or a column that is not there."""
    if unknown := next((name for name in mapping.fields if name not in COLUMNS), None):
        raise PipelineError(f"a task has no field {unknown!r}; the fields are {', '.join(COLUMNS)}")
    if "payload" in mapping.fields and mapping.payload_columns:
        raise PipelineError("the payload is mapped to a column and built from columns: give only one of both")
    there = [name for name in rows.columns if name != LINE]
    if missing := next((name for name in mapping.columns if name not in there), None):
        raise PipelineError(f"there is no column {missing!r}; the columns are {', '.join(there)}")


def _format(path: str) -> str:
    name = path.rstrip("/").lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    kind = next((kind for ending, kind in FORMATS.items() if name.endswith(ending)), None)
    if kind is None:
        raise PipelineError(f"{path} is of no known kind; a file to load ends in {', '.join(FORMATS)}")
    return kind


def _read_csv(spark: SparkSession, path: str) -> DataFrame:
    """The rows; one that does not fit the header is an error when it is read."""
    header = spark.read.options(**CSV).csv(path).schema
    if not header.fields:
        raise PipelineError(f"{path} cannot be read: it has no header")
    schema = StructType([*header.fields, StructField(CORRUPT, StringType())])
    shown = F.substring(F.regexp_replace(CORRUPT, r"\s+", " "), 1, SHOWN_CHARACTERS)
    ragged = F.concat(F.lit("a row has more or fewer fields than the header: '"), shown, F.lit("'"))
    fits = F.when(F.col(CORRUPT).isNull(), F.lit(True)).otherwise(F.raise_error(ragged).cast("boolean"))
    return spark.read.options(**CSV).schema(schema).csv(path).filter(fits).drop(CORRUPT)


def _read_lines(spark: SparkSession, path: str) -> DataFrame:
    """Each line as it stands, and its columns, if lines are objects."""
    lines = spark.read.text(path).filter(F.trim("value") != "").withColumnRenamed("value", LINE)
    broken = sum(row["broken"] for row in lines.mapInArrow(_count_broken, "broken long").collect())
    if broken:
        raise PipelineError(f"{path} cannot be read: {broken} of its lines are not JSON")
    # All lines are JSON; those that are no objects have no columns.
    found = [column for column in spark.read.json(path).schema.fields if column.name != CORRUPT]
    if not found:
        return lines
    return lines.select(LINE, F.from_json(LINE, StructType(found)).alias("row")).select(LINE, "row.*")


def _count_broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    broken = 0
    for batch in batches:
        broken += sum(not is_json(line) for line in batch.column(0).cast(pa.binary()).to_pylist())
    yield pa.record_batch([pa.array([broken])], names=["broken"])


def _object(rows: DataFrame, columns: Sequence[str]) -> Column:
    """The named columns, or the whole row, as a JSON object."""
    if not columns and LINE in rows.columns:
        return F.col(LINE)
    return F.to_json(F.struct(*map(_column, columns or rows.columns)), OBJECT)


def _field(rows: DataFrame, name: str, column: str) -> Column:
    """A column as the type that its field has; a value that is none of these is an error when it is read."""
    value, kind = _column(column), rows.schema[column].dataType
    if name in ("payload", "payload_base64", "meta"):
        return _document(value, kind)
    if COLUMNS[name] == WHOLE:
        return _number(value, column, "long", "whole number")
    if COLUMNS[name] == NUMBER:
        return _number(value, column, "double", "number")
    if COLUMNS[name] == INSTANT:
        return value.cast("timestamp") if isinstance(kind, TimestampNTZType) else value
    return value.cast("string")


def _number(value: Column, column: str, kind: str, told: str) -> Column:
    number = value.try_cast(kind)
    shown = F.substring(value.cast("string"), 1, SHOWN_CHARACTERS)
    wrong = F.concat(F.lit(f"the column {column} has '"), shown, F.lit(f"', which is no {told}"))
    return F.when(value.isNotNull() & number.isNull(), F.raise_error(wrong).cast(kind)).otherwise(number)


def _document(value: Column, kind: DataType) -> Column:
    """Text is taken for JSON, bytes stay bytes, and the rest is written as JSON."""
    if isinstance(kind, (StringType, BinaryType)):
        return value
    if isinstance(kind, (StructType, MapType, ArrayType)):
        return F.to_json(value, OBJECT)
    return value.cast("string")


def _column(name: str) -> Column:
    # A dot in a name is no way into a struct.
    return F.col(f"`{name.replace('`', '``')}`")
