"""Which columns a DataFrame may have: those of an enqueue request, of types that say what is meant."""

from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from app.pipeline.errors import PipelineError
from app.pipeline.sink.options import SinkOptions

TENANT = "tenant_id"

Types = tuple[type[DataType], ...]

TEXT: Types = (StringType,)
WHOLE: Types = (ByteType, ShortType, IntegerType, LongType)
NUMBER: Types = (*WHOLE, FloatType, DoubleType)
INSTANT: Types = (TimestampType, StringType)

COLUMNS: dict[str, Types] = {
    "queue": TEXT,
    # JSON text, or bytes.
    "payload": (StringType, BinaryType),
    # Base64, or bytes; for frames that hold both kinds of payload.
    "payload_base64": (StringType, BinaryType),
    "content_type": TEXT,
    "type": TEXT,
    # JSON text of an object.
    "meta": TEXT,
    "priority": WHOLE,
    "max_attempts": WHOLE,
    "delay_seconds": NUMBER,
    "available_at": INSTANT,
    "ttl_seconds": NUMBER,
    "expires_at": INSTANT,
    "timeout_seconds": NUMBER,
    "id": TEXT,
    TENANT: TEXT,
}
KEY: Types = (StringType, *WHOLE)
NAMES = {
    TEXT: "string", WHOLE: "integer", NUMBER: "number", INSTANT: "timestamp or string",
    (StringType, BinaryType): "string (JSON text) or binary", KEY: "string or integer",
}  # fmt: skip


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Raises `PipelineError` for a column that is unknown, missing, or of a type that cannot be meant."""
    names = schema.fieldNames()
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise PipelineError(f"there are two columns {doubled!r}")
    for column in schema.fields:
        _check(column.name, column.dataType, options)
    if options.key is not None and options.key not in names:
        raise PipelineError(f"there is no key column {options.key!r}; the columns are {', '.join(names)}")
    if "payload" not in names and "payload_base64" not in names:
        raise PipelineError("there is no column 'payload'")
    if "queue" not in names and options.queue is None:
        raise PipelineError("say the queue: as the option 'queue', or as a column")
    if TENANT in names and options.tenant is not None:
        raise PipelineError(f"the option 'tenant' and the column {TENANT!r} cannot both be given")


def _check(name: str, kind: DataType, options: SinkOptions) -> None:
    is_key = name == options.key
    if is_key and not isinstance(kind, KEY):
        raise PipelineError(f"the key column {name!r} must be {NAMES[KEY]}, not {kind.simpleString()}")
    if name == "dedupe_key" and not is_key:
        raise PipelineError("a job makes the dedupe keys itself; name your own as the option 'key', or drop the column")
    if name in COLUMNS and not isinstance(kind, COLUMNS[name]):
        raise PipelineError(f"the column {name!r} must be {NAMES[COLUMNS[name]]}, not {kind.simpleString()}")
    if name not in COLUMNS and not is_key:
        raise PipelineError(f"unknown column {name!r}; the columns are {', '.join(COLUMNS)}, and the key")
