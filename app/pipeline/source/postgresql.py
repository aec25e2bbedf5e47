"""PostgreSQL through ADBC: binary COPY straight into Arrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import Error, ProgrammingError
from adbc_driver_postgresql import StatementOptions, dbapi

from app.pipeline.source.batches import BATCH_BYTES, conform
from app.pipeline.source.comparisons import Comparison, Operator, Value, render, utc
from app.pipeline.source.database import REVISION, Database, refuse_other_revision, write_url
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.scan import Scan
from app.pipeline.tables import Kind, Table

CONNECTION = {"application_name": "leasemq-pipeline", "connect_timeout": "10", "client_encoding": "UTF8"}
# The service's driver keeps the last instant that Python knows as `infinity`, which this one reads as a time long ago.
INFINITY = -9_222_425_352_054_775_809
LAST_INSTANT = 253_402_300_799_999_999
# About the service's own driver alone.
NOT_FOR_LIBPQ = frozenset({"prepared_statement_cache_size"})
ORDERING = {Operator.LESS, Operator.LESS_OR_EQUAL, Operator.GREATER, Operator.GREATER_OR_EQUAL}


class PostgreSQL(Database):
    """A PostgreSQL database."""

    name = "postgresql"
    known_options = NOT_FOR_LIBPQ | {"host", "passfile", "port", "ssl", "sslmode", "target_session_attrs"}

    def revision(self) -> str | None:
        with self._cursor() as cursor:
            return _revision(cursor)

    def key_range(self, table: Table) -> KeyRange:
        with self._cursor() as cursor:
            return _key_range(cursor, table)

    def checked_key_range(self, table: Table) -> KeyRange:
        """By one connection: the driver looks at all types of the database in each."""
        with self._cursor() as cursor:
            refuse_other_revision(_revision(cursor))
            return _key_range(cursor, table)

    def render(self, comparison: Comparison) -> str:
        column = comparison.column.name
        # Spark orders text by its bytes; some columns have the database's own order.
        if comparison.column.kind is Kind.TEXT and comparison.operator in ORDERING:
            column += ' COLLATE "C"'
        return render(comparison, column, literal)

    def read(self, scan: Scan, keys: KeyRange) -> Iterator[pa.RecordBatch]:
        schema = scan.arrow_schema
        with self._cursor() as cursor:
            cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)})
            cursor.execute(scan.statement(keys, self.render))
            for batch in cursor.fetch_record_batch():
                yield conform(_finite(batch), schema)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        try:
            with dbapi.connect(self._uri(), autocommit=True) as connection, connection.cursor() as cursor:
                yield cursor
        except ProgrammingError:
            raise
        except (Error, OSError, pa.ArrowException) as error:
            raise self.no_answer(error) from error

    def _uri(self) -> str:
        """The URL as libpq takes it; what the service's driver calls `ssl` is `sslmode` there."""
        address = self.address
        options = ((name, value) for name, value in address.options if name not in NOT_FOR_LIBPQ)
        given = {"sslmode" if name == "ssl" else name: value for name, value in options}
        return f"{write_url('postgresql', address)}?{urlencode({**CONNECTION, **given}, quote_via=quote)}"


def _revision(cursor: Any) -> str | None:
    try:
        return str(_fetch_row(cursor, REVISION)[0])
    except ProgrammingError:
        return None


def _key_range(cursor: Any, table: Table) -> KeyRange:
    first, last = _fetch_row(cursor, f"SELECT min({table.key}), max({table.key}) FROM {table.relation}")
    return KeyRange(first, last) if first is not None else KeyRange(1, 0)


def _fetch_row(cursor: Any, statement: str) -> tuple[Any, ...]:
    cursor.execute(statement)
    return cursor.fetchone() or (None,)


def _finite(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the last instant where the database says `infinity`."""
    for index, field in enumerate(batch.schema):
        if not pa.types.is_timestamp(field.type):
            continue
        ticks = batch.column(index).cast(pa.int64())
        if (least := pc.min(ticks).as_py()) is not None and least <= INFINITY:
            ticks = pc.if_else(pc.equal(ticks, INFINITY), LAST_INSTANT, ticks)
            batch = batch.set_column(index, field, ticks.cast(field.type))
    return batch


def literal(kind: Kind, value: Value) -> str:
    """A value as SQL that means the same under every setting of the server."""
    match value:
        case bool():
            return str(value).upper()
        case datetime():
            instant = utc(value)
            return "TIMESTAMPTZ 'infinity'" if instant == datetime.max else f"TIMESTAMPTZ '{instant.isoformat(' ')}+00'"
        case bytes():
            return f"decode('{value.hex()}', 'hex')"
        case str():
            # Doubled in this form, neither quotes nor backslashes mean anything.
            doubled = value.replace("\\", "\\\\").replace("'", "''")
            return f"E'{doubled}'"
        case float():
            return f"'{value!r}'::float8"
    return f"{value:d}"
