"""MySQL: rows through connectorx as a stream of Arrow batches, everything small through the service's driver."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import asyncmy
import connectorx
import pyarrow as pa
from asyncmy.errors import MySQLError

from app.pipeline.errors import PipelineError
from app.pipeline.source.batches import conform, gather
from app.pipeline.source.comparisons import Comparison, Value, render, utc
from app.pipeline.source.database import REVISION, Database, write_url
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.mysql_parts import cut, weigh
from app.pipeline.source.mysql_tls import Tls
from app.pipeline.source.scan import Scan
from app.pipeline.tables import Kind, Table

PORT = 3306
CONNECT_SECONDS = 10
NO_SUCH_TABLE = 1146
ROWS_AT_ONCE = 500


class MySQL(Database):
    """A MySQL database."""

    name = "mysql"
    known_options = frozenset({"charset", "connect_timeout", "ssl_ca", "ssl_check_hostname"})

    def revision(self) -> str | None:
        try:
            rows = self._fetch(REVISION)
        except MySQLError as error:
            if error.args and error.args[0] == NO_SUCH_TABLE:
                return None
            raise self.no_answer(error) from error
        return str(rows[0][0]) if rows else None

    def key_range(self, table: Table) -> KeyRange:
        statement = f"SELECT min({table.key}), max({table.key}) FROM {table.relation}"
        try:
            [(first, last)] = self._fetch(statement)
        except MySQLError as error:
            raise self.no_answer(error) from error
        return KeyRange(first, last) if first is not None else KeyRange(1, 0)

    def render(self, comparison: Comparison) -> str:
        return render(comparison, comparison.column.name, literal)

    def read(self, scan: Scan, keys: KeyRange) -> Iterator[pa.RecordBatch]:
        with self._translated():
            yield from gather(batch for part in self._parts(scan, keys) for batch in self._read_part(scan, part))

    def _parts(self, scan: Scan, keys: KeyRange) -> Iterator[KeyRange]:
        # Not by connectorx: it would try for half a minute to connect to a server that is not there.
        return cut(keys, self._fetch(weigh(scan, keys)))

    def _read_part(self, scan: Scan, keys: KeyRange) -> Iterator[pa.RecordBatch]:
        statement, schema = scan.statement(keys, self.render), scan.arrow_schema
        rows = connectorx.read_sql(self._url(), statement, return_type="arrow_stream", batch_size=ROWS_AT_ONCE)
        return (conform(batch, schema) for batch in rows)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (GeneratorExit, KeyboardInterrupt, SystemExit, PipelineError):
            raise
        except BaseException as error:
            # A connection that is lost on the way is a panic of the driver, which is no `Exception`.
            raise self.no_answer(error) from error

    def _url(self) -> str:
        """The URL as connectorx takes it, which always speaks utf8mb4."""
        options = {"tcp_connect_timeout_ms": str(1000 * self._connect_seconds()), **self._tls().for_connectorx()}
        return f"{write_url('mysql', self.address)}?{urlencode(options, quote_via=quote)}"

    def _connect_seconds(self) -> int:
        return math.ceil(self.address.seconds("connect_timeout", CONNECT_SECONDS))

    def _tls(self) -> Tls:
        return Tls.of(self.address)

    def _fetch(self, statement: str) -> Sequence[tuple[Any, ...]]:
        # In a thread of its own, since the caller's may be running an event loop.
        with ThreadPoolExecutor(max_workers=1) as pool:
            return pool.submit(asyncio.run, self._fetch_async(statement)).result()

    async def _fetch_async(self, statement: str) -> Sequence[tuple[Any, ...]]:
        try:
            async with asyncmy.connect(**self._connection()) as connection, connection.cursor() as cursor:
                await cursor.execute(statement)
                rows: Sequence[tuple[Any, ...]] = await cursor.fetchall()
                return rows
        except (OSError, RuntimeError) as error:
            raise self.no_answer(error) from error

    def _connection(self) -> dict[str, Any]:
        return {
            "host": self.address.host,
            "port": self.address.port or PORT,
            "user": self.address.user,
            "password": self.address.password,
            "db": self.address.database,
            "charset": "utf8mb4",
            "connect_timeout": self._connect_seconds(),
            **self._tls().for_asyncmy(),
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
