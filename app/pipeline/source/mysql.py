"""MySQL: rows through connectorx as a stream of Arrow batches, everything small through the service's driver."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import asyncmy
import connectorx
import pyarrow as pa
from asyncmy.errors import MySQLError

from app.pipeline.source.batches import conform, gather
from app.pipeline.source.comparisons import Comparison, Value, render, utc
from app.pipeline.source.database import REVISION, Database, write_url
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.scan import Scan
from app.pipeline.tables import Kind, Table

PORT = 3306
CONNECT_SECONDS = 10
NO_SUCH_TABLE = 1146
# So few that a batch of the largest payloads still fits in memory.
ROWS_AT_ONCE = 500


class MySQL(Database):
    """A MySQL database."""

    name = "mysql"

    def revision(self) -> str | None:
        try:
            return str(self._fetch_row(REVISION)[0])
        except MySQLError as error:
            if error.args and error.args[0] == NO_SUCH_TABLE:
                return None
            raise self.no_answer(error) from error

    def key_range(self, table: Table) -> KeyRange:
        first, last = self._fetch_row(f"SELECT min({table.key}), max({table.key}) FROM {table.relation}")
        return KeyRange(first, last) if first is not None else KeyRange(1, 0)

    def render(self, comparison: Comparison) -> str:
        return render(comparison, comparison.column.name, literal)

    def read(self, scan: Scan, keys: KeyRange) -> Iterator[pa.RecordBatch]:
        statement, schema = scan.statement(keys, self.render), scan.arrow_schema
        with self._translated():
            rows = connectorx.read_sql(self._url(), statement, return_type="arrow_stream", batch_size=ROWS_AT_ONCE)
            yield from gather(conform(batch, schema) for batch in rows)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A connection that is lost on the way is a panic of the driver, which is no `Exception`.
            raise self.no_answer(error) from error

    def _url(self) -> str:
        # What else a URL may say is for the service's driver, and unknown to this one.
        return write_url("mysql", self.address)

    def _fetch_row(self, statement: str) -> tuple[Any, ...]:
        # In a thread of its own, since the caller's may be running an event loop.
        with ThreadPoolExecutor(max_workers=1) as pool:
            return pool.submit(asyncio.run, self._fetch_row_async(statement)).result()

    async def _fetch_row_async(self, statement: str) -> tuple[Any, ...]:
        try:
            connection = asyncmy.connect(**self._connection())
        except (MySQLError, OSError, RuntimeError) as error:
            raise self.no_answer(error) from error
        async with connection as connected, connected.cursor() as cursor:
            await cursor.execute(statement)
            return await cursor.fetchone() or (None,)

    def _connection(self) -> dict[str, Any]:
        return {
            "host": self.address.host,
            "port": self.address.port or PORT,
            "user": self.address.user,
            "password": self.address.password,
            "db": self.address.database,
            "charset": "utf8mb4",
            "connect_timeout": CONNECT_SECONDS,
        }


def literal(kind: Kind, value: Value) -> str:
    """A value as SQL that means the same under every setting of the server."""
    match value:
        case bool():
            return "1" if value else "0"
        case datetime():
            return f"TIMESTAMP '{utc(value).isoformat(' ')}'"
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            # As numbers, no sign of it can end the literal, whatever the server takes for an escape.
            return f"_utf8mb4 x'{value.encode().hex()}'"
        case float():
            return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return f"{value:d}"
