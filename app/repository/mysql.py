"""MySQL 8.0.17 or newer (the first with a binary collation that does not pad), through asyncmy."""

import json
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, cast

from asyncmy.errors import MySQLError
from sqlalchemy import URL, RowMapping, TextClause, text
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.domain.commands import ReserveRequest
from app.domain.transitions import Event, Move
from app.repository.asyncmy_connection import CONVERSIONS, AsyncmyConnection, Rows
from app.repository.claiming import pick_parameters
from app.repository.connection import Connection, Row
from app.repository.dialect import Claimed, Dialect, ErrorKind, Grant, Lane, UnsuitableServer, lane_record
from app.repository.mysql_claiming import SHORT, lease_locked
from app.repository.pool import PoolSettings
from app.repository.records import keep_until
from app.repository.session import Session
from app.repository.statements import repeat_for_lanes

OLDEST_VERSION = (8, 0, 17)

DUPLICATE = 1062
TRANSIENT = frozenset({1213, 3572})
LOCK_TIMEOUT = 1205
# Too many connections, shutting down, read-only, and the client's own codes for a lost connection or a closed one.
UNREACHABLE = frozenset({0, 1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1290, 1836, *range(2000, 2100)})
OF_LANE = ("queue_id", "type", "place", "room")
# The columns of `insert_tasks` that say something of the task, in its order.
of_new_task = itemgetter(
    "queue_id", "id", "queue", "topic", "publish_id", "type", "payload", "payload_is_json", "content_type", "meta",
    "size", "priority", "dedupe_key", "dedupe_seconds", "status", "max_attempts", "available_at", "expires_at",
    "timeout_seconds",
)  # fmt: skip
MIGRATION_LOCK = "leasemq.migrate"
MIGRATION_LOCK_SECONDS = 600


def connect_mysql(url: URL, pool: PoolSettings) -> AsyncEngine:
    """An engine on the URL as users write it; sessions speak UTC, utf8mb4 and strict SQL, whatever the server does."""
    seconds = math.ceil(pool.lock_timeout_seconds)
    return create_async_engine(
        url.set(drivername="mysql+asyncmy", query={"charset": "utf8mb4", **url.query}),
        isolation_level="READ COMMITTED",
        pool_size=pool.size,
        max_overflow=0,
        pool_timeout=pool.wait_seconds,
        # Whoever began a transaction has ended it.
        pool_reset_on_return=None,
        connect_args={
            "conv": CONVERSIONS,
            "connect_timeout": math.ceil(pool.timeout_seconds),
            # By default a locked table would be waited for a year.
            "init_command": (
                "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE',"
                f" lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}"
            ),
        },
    )


class MySQL(Dialect):
    name = "mysql"
    # As many as go into one: transactions side by side would wait for the same pages, and each syncs two logs.
    worthwhile = 1000
    merged_indexes = frozenset({"ix_mq_tasks_scheduled", "ix_mq_tasks_leased", "ix_mq_tasks_tombstones"})
    errors = (DBAPIError, PoolTimeout, MySQLError)

    @asynccontextmanager
    async def connect(self, *, write: bool) -> AsyncIterator[AsyncConnection]:
        async with self._checked_out() as connection:
            await connection.begin()
            yield connection

    @asynccontextmanager
    async def transaction(self, *, write: bool) -> AsyncIterator[Connection]:
        async with self._checked_out() as connection:
            driver: Any = cast(SyncConnection, connection.sync_connection).connection.driver_connection
            transaction = AsyncmyConnection(driver, self.prepare)
            whole = False
            try:
                yield transaction
                await transaction.roll_back_unless_ended()
                whole = True
            except Exception as error:
                if not isinstance(error, OSError) and not _is_lost(error):
                    await transaction.roll_back_unless_ended()
                    whole = True
                raise
            finally:
                if not whole:
                    # A connection on which something was broken off is not given to anybody else.
                    driver.close()
                    await connection.invalidate()

    @asynccontextmanager
    async def _checked_out(self) -> AsyncIterator[AsyncConnection]:
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(self.engine.connect())
            except RuntimeError as error:
                # So the driver tells of a connection that was reset while it was being made.
                raise ConnectionError("the connection was reset") from error
            yield connection

    def prepare(self, statement: str, parameters: Mapping[str, object]) -> tuple[TextClause, dict[str, object]]:
        if "lanes" not in parameters:
            return super().prepare(statement, parameters)
        shared = {name: self.encode(value) for name, value in parameters.items() if name != "lanes"}
        lanes = cast(Sequence[Row], parameters["lanes"])
        of_lanes = {
            f"{name}_{index}": lane[name] for index, lane in enumerate(lanes) for name in OF_LANE if name in lane
        }
        return repeat_for_lanes(self.statements[statement], len(lanes)), shared | of_lanes

    def encode(self, value: object) -> object:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            # What is absent becomes NULL.
            records = [{name: item for name, item in record.items() if item is not None} for record in value]
            return json.dumps(records, default=lambda instant: _naive(instant).isoformat())
        return value

    def decode(self, row: RowMapping) -> Row:
        return cast(Row, row)

    async def insert_tasks(self, session: Session, tenant_id: str, tasks: Sequence[Row]) -> None:
        rows = Rows((tenant_id, *of_new_task(task), session.now, session.now, 0) for task in tasks)
        await session.run("insert_tasks", tasks=rows)

    async def archive(self, session: Session, moves: Sequence[Move]) -> None:
        acked: dict[tuple[datetime, datetime | None], list[int]] = {}
        others: list[Move] = []
        for move in moves:
            if move.event is Event.ACK and move.result is None:
                acked.setdefault((move.at, keep_until(move)), []).append(move.task.seq)
            else:
                others.append(move)
        await super().archive(session, others)
        for (at, until), seqs in acked.items():
            await session.run("archive_acked", at=at, keep_until=until, seqs=seqs)

    async def restore_dead_letters(self, session: Session, letters: Sequence[Row]) -> None:
        await session.run("restore_many", now=session.now, letters=list(letters))

    async def claim(
        self, session: Session, wish: ReserveRequest, lanes: Sequence[Lane], grants: Sequence[Grant]
    ) -> Claimed:
        parameters = pick_parameters(session, wish)
        if len(lanes) == 1 and lanes[0].type is None:
            limit = min(lanes[0].room, len(grants))
            picked = await session.rows(
                "pick_queue", queue_id=lanes[0].queue_id, limit=limit, short=SHORT, **parameters
            )
            return Claimed(await lease_locked(session, wish, lanes, grants, picked))
        records = [lane_record(lane) for lane in lanes]
        ranked = await session.rows("rank_lanes", lanes=records, limit=len(grants), **parameters)
        if not ranked:
            return Claimed([])
        rows = await session.rows("lock_ranked", seqs=[row["seq"] for row in ranked], short=SHORT)
        locked = {row["seq"]: row for row in rows}
        winners = [locked[row["seq"]] for row in ranked if _still_the_same(row, locked.get(row["seq"]))]
        return Claimed(await lease_locked(session, wish, lanes, grants, winners), raced=not winners)

    def kind_of(self, error: Exception) -> ErrorKind:
        code = _code_of(error)
        if code == DUPLICATE:
            return ErrorKind.DUPLICATE
        if code in TRANSIENT:
            return ErrorKind.TRANSIENT
        if code == LOCK_TIMEOUT:
            return ErrorKind.LOCKED
        return ErrorKind.UNREACHABLE if _is_lost(error) else ErrorKind.OTHER

    async def check_server(self, connection: AsyncConnection) -> None:
        version = str((await connection.execute(text("SELECT version()"))).scalar_one())
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
        if "mariadb" in version.lower() or numbers < OLDEST_VERSION:
            raise UnsuitableServer(f"MySQL 8.0.17 or newer is needed, and MariaDB is not MySQL; this is {version}.")

    @asynccontextmanager
    async def migration_lock(self, connection: AsyncConnection) -> AsyncIterator[None]:
        lock = {"lock": MIGRATION_LOCK, "seconds": MIGRATION_LOCK_SECONDS}
        # Named for this database, of which the server may hold several, within the 64 characters of a lock's name.
        name = "concat(:lock, '.', left(sha2(database(), 256), 32))"
        if (await connection.execute(text(f"SELECT get_lock({name}, :seconds)"), lock)).scalar_one() != 1:
            raise UnsuitableServer("Another process has been migrating this database for too long.")
        try:
            yield
        finally:
            await connection.execute(text(f"SELECT release_lock({name})"), {"lock": MIGRATION_LOCK})


def _code_of(error: BaseException | None) -> object:
    """The server's or the driver's number for an error."""
    if isinstance(error, DBAPIError):
        return _code_of(error.orig)
    return error.args[0] if isinstance(error, MySQLError) and error.args else None


def _is_lost(error: Exception) -> bool:
    """Whether the connection is gone, or never was."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, PoolTimeout) or _code_of(error) in UNREACHABLE


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)


def _still_the_same(ranked: Row, locked: Row | None) -> bool:
    return locked is not None and bool(locked["priority"] == ranked["priority"])
