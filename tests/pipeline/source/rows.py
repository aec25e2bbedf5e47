"""Rows at the edges of what the tables can hold, as Python values, and their way into a database."""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from app.pipeline.tables import TABLES, Column, Kind, Table
from app.repository.factory import connect_dialect
from app.repository.schema import migrate

Row = dict[str, Any]

MEBIBYTE = 2**20
LAST_KEY = 2**63 - 1
# A reader that guesses types from the first rows goes wrong here.
NULLS_IN_FRONT = 2_000
NASTY = (
    "plain", "", " trailing ", "Plain", "it's", '"quoted"', "back\\slash", "\\'", "'; DROP TABLE mq_tasks; --", "100%s",
    ":name", "?", "$1", "/* x */", "line\nbreak\ttab", "größer", "日本語", "👩‍🚀🎉", "\u0001",
)  # fmt: skip
EDGES: dict[Kind, tuple[Any, ...]] = {
    Kind.TEXT: NASTY,
    Kind.BYTES: (b"", b"\x00", bytes(range(256)), b"{}", b"'\\"),
    Kind.INTEGER: (0, -(2**31), 2**31 - 1, 1, -1),
    Kind.LONG: (0, 1),
    Kind.DOUBLE: (0.0, 0.1, -1.5, 1e-300, 1.7976931348623157e308, 123456789.123456789),
    Kind.BOOLEAN: (True, False),
    Kind.INSTANT: (
        datetime(1900, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 2, 28, 12, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 10, 25, 1, 30, 0, 123_456, tzinfo=UTC),
    ),
}
# What the constraints ask of a row, and columns that are not the pipeline's.
FIXED: dict[str, Row] = {
    "tasks": {"queue_id": 1, "size": 1, "status": "ready", "lease_owner": None, "lease_until": None, "leased_at": None},
    "history": {"size": 1, "status": "done"},
    "dlq": {"size": 1},
    "attempts": {},
}
COUNTED = ("attempts", "max_attempts")


def edge_rows(table: Table) -> list[Row]:
    """NULL wherever it may be, then every edge of every column, one row of the greatest payload and key at the end."""
    rows = [_row(table, number, nulls=True) for number in range(1, NULLS_IN_FRONT + 1)]
    rows += [_row(table, NULLS_IN_FRONT + number) for number in range(1, 41)]
    last = _row(table, LAST_KEY)
    if "payload" in last:
        last["payload"] = random.Random(7).randbytes(MEBIBYTE)
    return [*rows, last]


def _row(table: Table, number: int, *, nulls: bool = False) -> Row:
    columns = {column.name: _value(table, column, number, nulls=nulls) for column in table.columns}
    ids = {name: f"task-{number}" for name in ("id", "task_id") if isinstance(columns.get(name), str)}
    return {**columns, **ids, **FIXED[table.name]}


def _value(table: Table, column: Column, number: int, *, nulls: bool) -> Any:
    if column.name == table.key:
        return number
    if column.nullable and nulls:
        return None
    edges = EDGES[column.kind]
    if column.name in COUNTED:
        edges = (0, 1, 2**31 - 1)
    # A sign of its own for each column, so that values come in many combinations.
    value = edges[(number + len(column.name)) % len(edges)]
    # A key holds once only.
    return f"{value}{number}" if column.name == "dedupe_key" else value


async def insert_rows(database_url: str, rows: Mapping[str, Sequence[Row]]) -> None:
    """Migrates a database and writes rows with the service's own drivers."""
    dialect = connect_dialect(database_url)
    try:
        await migrate(dialect)
        async with dialect.connect(write=True) as connection:
            for name, of_table in rows.items():
                for chunk in _chunks([{key: dialect.encode(value) for key, value in row.items()} for row in of_table]):
                    await connection.execute(text(_insert(name, chunk[0])), chunk)
            await connection.commit()
    finally:
        await dialect.close()


def _insert(name: str, row: Row) -> str:
    return f"INSERT INTO {TABLES[name].relation} ({', '.join(row)}) VALUES ({', '.join(f':{key}' for key in row)})"


def _chunks(rows: list[Row], size: int = 500) -> Iterator[list[Row]]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
