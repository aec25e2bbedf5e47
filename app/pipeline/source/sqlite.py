"""SQLite through the standard library: it has no types for times and booleans, so the schema says what they are."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from app.pipeline.errors import PipelineError
from app.pipeline.source.batches import BATCH_BYTES, gather
from app.pipeline.source.comparisons import Comparison, Value, render, utc
from app.pipeline.source.database import REVISION, Database
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.scan import Scan
from app.pipeline.tables import ARROW_TYPES, Column, Kind, Table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
MICROSECOND = timedelta(microseconds=1)
BUSY_SECONDS = 10
ROWS_AT_ONCE = 512
# So few that the largest rows there can be fit in memory; after as many it is seen how large they are.
ROWS_IN_STEP = 32
# What may be long; the rest of a row is some kilobytes.
LONG = frozenset({"payload", "result"})


class SQLite(Database):
    """An SQLite file; on a cluster every worker must see it."""

    name = "sqlite"
    known_options = frozenset({"timeout"})

    def revision(self) -> str | None:
        with self._connection() as connection:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = connection.execute(REVISION).fetchone() if known else None
        return None if row is None else str(row[0])

    def key_range(self, table: Table) -> KeyRange:
        with self._connection() as connection:
            statement = f"SELECT min({table.key}), max({table.key}) FROM {table.relation}"
            first, last = connection.execute(statement).fetchone()
        return KeyRange(first, last) if first is not None else KeyRange(1, 0)

    def render(self, comparison: Comparison) -> str:
        return render(comparison, comparison.column.name, lambda kind, value: "?")

    def read(self, scan: Scan, keys: KeyRange) -> Iterator[pa.RecordBatch]:
        values = [encode(value) for comparison in scan.comparisons for value in comparison.values]
        with self._connection() as connection:
            rows = connection.execute(scan.statement(keys, self.render), values)
            yield from gather(_batches(rows, scan))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        path = Path(self.address.database)
        if not path.is_file():
            raise PipelineError(f"there is no file {path}")
        try:
            # Read-only: looking at a database must not make one.
            uri = f"file:{quote(str(path.absolute()))}?mode=ro"
            with closing(
                sqlite3.connect(uri, uri=True, timeout=self.address.seconds("timeout", BUSY_SECONDS))
            ) as connection:
                yield connection
        except sqlite3.Error as error:
            raise self.no_answer(error) from error


def _batches(rows: sqlite3.Cursor, scan: Scan) -> Iterator[pa.RecordBatch]:
    schema = scan.arrow_schema
    for chunk in _chunks(rows, [place for place, column in enumerate(scan.columns) if column.name in LONG]):
        arrays = [
            to_array(column, values) for column, values in zip(scan.columns, zip(*chunk, strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chunks(rows: sqlite3.Cursor, long: Sequence[int]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows together until there are enough of them, or enough bytes in what may be long."""
    chunk: list[tuple[Any, ...]] = []
    size = 0
    while step := rows.fetchmany(ROWS_IN_STEP):
        chunk += step
        size += sum(len(row[place] or b"") for row in step for place in long)
        if len(chunk) >= ROWS_AT_ONCE or size >= BATCH_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def to_array(column: Column, values: Sequence[Any]) -> pa.Array:
    """A column's values as SQLite gives them: an instant in microseconds since 1970, a boolean as 0 or 1."""
    if column.kind is Kind.BOOLEAN:
        return pa.array(values, pa.int8()).cast(pa.bool_())
    return pa.array(values, ARROW_TYPES[column.kind])


def encode(value: Value) -> Value:
    """A value as SQLite keeps it."""
    if isinstance(value, datetime):
        return (utc(value) - EPOCH) // MICROSECOND
    return int(value) if isinstance(value, bool) else value
