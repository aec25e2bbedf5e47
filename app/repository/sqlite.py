"""An SQLite file, through aiosqlite: one writer at a time, decided by `BEGIN IMMEDIATE`."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, RowMapping, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.domain.commands import ReserveRequest
from app.repository.claiming import lease_picked, pick_parameters
from app.repository.connection import Row
from app.repository.dialect import Claimed, Dialect, ErrorKind, Grant, Lane, lane_record
from app.repository.pool import PoolSettings
from app.repository.session import Session

OLDEST_VERSION = (3, 35, 0)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# The columns that hold them, by name, since an integer does not tell.
INSTANTS = frozenset({
    "available_at", "created_at", "dedupe_until", "deleted_at", "expires_at", "failed_at", "finished_at",
    "first_leased_at", "keep_alive_until", "last_error_at", "lease_until", "leased_at", "next_at", "now", "oldest_at",
    "queue_ends_at", "rate_left_at", "started_at", "updated_at",
})  # fmt: skip


def connect_sqlite(url: URL, pool: PoolSettings) -> AsyncEngine:
    """An engine on a file, which is made if it is not there."""
    if sqlite3.sqlite_version_info < OLDEST_VERSION:
        raise ValueError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
    if not url.database or url.database == ":memory:":
        raise ValueError("an SQLite database must be a file, for example sqlite:///leasemq.db")
    if not Path(url.database).absolute().parent.is_dir():
        raise ValueError(f"there is no directory {Path(url.database).absolute().parent}")
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"),
        pool_size=pool.size,
        max_overflow=0,
        pool_timeout=pool.wait_seconds,
        connect_args={"timeout": pool.timeout_seconds},
    )
    event.listen(engine.sync_engine, "connect", _prepare_connection)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _prepare_connection(connection: Any, record: object) -> None:
    # The driver would begin transactions by itself, and too late: only at the first change.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


class SQLite(Dialect):
    name = "sqlite"
    writers = 1
    tells_of_transactions = False

    def __init__(self, engine: AsyncEngine, pool: PoolSettings) -> None:
        super().__init__(engine, pool)
        # SQLite's own waiting for the writer sleeps and retries; within a process a queue is fair and costs nothing.
        self._writer = asyncio.Lock()

    @asynccontextmanager
    async def connect(self, *, write: bool) -> AsyncIterator[AsyncConnection]:
        if not write:
            async with self._connection(write=False) as connection:
                yield connection
            return
        async with self._writer, self._connection(write=True) as connection:
            yield connection

    @asynccontextmanager
    async def _connection(self, *, write: bool) -> AsyncIterator[AsyncConnection]:
        async with self.engine.connect() as connection:
            await connection.execution_options(write=write)
            await connection.begin()
            yield connection

    def clock(self) -> datetime | None:
        # Its own clock has milliseconds.
        return datetime.now(UTC)

    def encode(self, value: object) -> object:
        if isinstance(value, datetime):
            return _microseconds(value)
        if isinstance(value, list):
            return json.dumps(value, default=_microseconds, ensure_ascii=False)
        return value

    def decode(self, row: RowMapping) -> Row:
        return {
            name: EPOCH + value * MICROSECOND if name in INSTANTS and value is not None else value
            for name, value in row.items()
        }

    async def insert_tasks(self, session: Session, tenant_id: str, tasks: Sequence[Row]) -> None:
        await session.run_each("insert_tasks", [{**task, "tenant_id": tenant_id, "now": session.now} for task in tasks])

    async def restore_dead_letters(self, session: Session, letters: Sequence[Row]) -> None:
        await session.run("restore_many", now=session.now, letters=list(letters))

    async def claim(
        self, session: Session, wish: ReserveRequest, lanes: Sequence[Lane], grants: Sequence[Grant]
    ) -> Claimed:
        parameters = pick_parameters(session, wish)
        if len(lanes) == 1 and lanes[0].type is None:
            limit = min(lanes[0].room, len(grants))
            picked = await session.rows("pick_queue", queue_id=lanes[0].queue_id, limit=limit, **parameters)
        else:
            records = [lane_record(lane) for lane in lanes]
            picked = await session.rows("rank_lanes", lanes=records, limit=len(grants), **parameters)
        return Claimed(await lease_picked(session, wish, lanes, grants, picked))

    def kind_of(self, error: Exception) -> ErrorKind:
        if not isinstance(error, DBAPIError):
            return ErrorKind.UNREACHABLE
        code = getattr(error.orig, "sqlite_errorcode", None)
        # Extended codes carry the kind of error in their low byte.
        kind = None if code is None else code & 0xFF
        if kind in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return ErrorKind.LOCKED
        if kind in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            return ErrorKind.UNREACHABLE
        return ErrorKind.OTHER

    async def check_server(self, connection: AsyncConnection) -> None:
        # The library's version was looked at when the engine was made.
        pass

    @asynccontextmanager
    async def migration_lock(self, connection: AsyncConnection) -> AsyncIterator[None]:
        # The transaction that the migrations run in is the lock.
        yield


def _microseconds(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND
