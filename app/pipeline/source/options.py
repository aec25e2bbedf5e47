"""The options of a read, and the columns that the caller's schema asks for."""

from collections.abc import Mapping

from pyspark.sql.types import StructType

from app.pipeline.errors import PipelineError
from app.pipeline.tables import SPARK_TYPES, TABLES, Column, Table

KNOWN = ("url", "table", "where", "partitions", "pushdown")
SWITCH = {"true": True, "false": False}


def check_names(options: Mapping[str, str]) -> None:
    """Raises `PipelineError` for an option that is none: most likely a typo."""
    unknown = sorted(set(options) - set(KNOWN))
    if unknown:
        raise PipelineError(f"no such option: {', '.join(unknown)}; there are {', '.join(KNOWN)}")


def url_of(options: Mapping[str, str]) -> str:
    """The database that is read."""
    if not options.get("url"):
        raise PipelineError("the option url is missing: the database's, as in MQ_DATABASE_URL")
    return options["url"]


def table_of(options: Mapping[str, str]) -> Table:
    """The table that is read."""
    name = options.get("table", "")
    if name not in TABLES:
        raise PipelineError(f"no such table: {name or 'none given'}; there are {', '.join(TABLES)}")
    return TABLES[name]


def partitions_of(options: Mapping[str, str]) -> int | None:
    """Into how many ranges of keys the table is cut; None leaves that to the reader."""
    text = options.get("partitions")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise PipelineError(f"the option partitions must be a whole number above 0, not {text!r}")
    return int(text)


def pushdown_of(options: Mapping[str, str]) -> bool:
    """Whether Spark's own filters go to the database."""
    text = options.get("pushdown", "false").lower()
    if text not in SWITCH:
        raise PipelineError(f"the option pushdown must be true or false, not {text!r}")
    return SWITCH[text]


def columns_of(table: Table, schema: StructType) -> tuple[Column, ...]:
    """The table's columns in the order of the caller's schema, which may leave out some, but change none."""
    known = {column.name: column for column in table.columns}
    for field in schema.fields:
        if field.name not in known:
            raise PipelineError(f"the table {table.name} has no column {field.name}; it has {', '.join(known)}")
        expected = SPARK_TYPES[known[field.name].kind]
        if field.dataType != expected:
            raise PipelineError(
                f"the column {field.name} of {table.name} is {expected.simpleString()},"
                f" not {field.dataType.simpleString()}"
            )
        if known[field.name].nullable and not field.nullable:
            raise PipelineError(f"the column {field.name} of {table.name} may be NULL")
    return tuple(known[field.name] for field in schema.fields)
