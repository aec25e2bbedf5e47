"""PostgreSQL, through asyncpg."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg
from sqlalchemy import URL, RowMapping, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.domain.commands import ReserveRequest
from app.domain.queue import Queue
from app.repository.asyncpg_connection import AsyncpgConnection, AsyncpgPool, NumberedStatements
from app.repository.connection import Connection, Row
from app.repository.dialect import Claimed, Dialect, ErrorKind, Grant, Lane, Raced, UnsuitableServer, lane_record
from app.repository.grants import grant_parameters
from app.repository.lane_memory import NEVER, LaneMemory, ends_of
from app.repository.pool import PoolSettings
from app.repository.session import Session

# Any number will do, as long as all replicas take the same.
MIGRATION_LOCK = 0x4C656173654D51

OLDEST_VERSION = 130000
SERVER_SETTINGS = """
SELECT
    CAST(current_setting('server_version_num') AS integer) AS version,
    current_setting('server_encoding') AS encoding
"""

# A statement that is a transaction by itself is planned once, for whatever its parameters will be: to plan it takes
# longer than to run it. Of others the server knows better how many rows they take when it knows their parameters.
PLAN_OF_SHORTCUTS = "force_generic_plan"
# A plan that is made while a table is small must be good when it is large: there is an index for every statement.
PLANNING = {"plan_cache_mode": PLAN_OF_SHORTCUTS, "enable_seqscan": "off", "jit": "off"}
BEGIN = "BEGIN; SET LOCAL plan_cache_mode = auto"

TRANSIENT = frozenset({"40001", "40P01"})
DUPLICATE = "23505"
LOCK_TIMEOUT = "55P03"
# Lost, out of resources, shutting down or starting up, read-only.
UNREACHABLE_CLASSES = ("08", "53", "57", "25006")


def connect_postgresql(url: URL, pool: PoolSettings) -> AsyncEngine:
    """An engine on the URL as users write it, libpq's `sslmode` included."""
    query = dict(url.query)
    if "sslmode" in query:
        query["ssl"] = query.pop("sslmode")
    return create_async_engine(
        url.set(drivername="postgresql+asyncpg", query=query),
        pool_size=pool.size,
        max_overflow=0,
        pool_timeout=pool.wait_seconds,
        connect_args=driver_options(pool),
    )


def driver_options(pool: PoolSettings, **settings: str) -> dict[str, Any]:
    return {
        "timeout": pool.timeout_seconds,
        "server_settings": {
            "application_name": "leasemq",
            "timezone": "UTC",
            "lock_timeout": f"{pool.lock_timeout_seconds * 1000:.0f}",
            "default_transaction_isolation": "read committed",
            **settings,
        },
    }


class PostgreSQL(Dialect):
    name = "postgresql"
    remembers_starts = True
    # The last is what it says of a connection that breaks off between two of its own steps.
    errors = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

    def __init__(self, engine: AsyncEngine, pool: PoolSettings) -> None:
        super().__init__(engine, pool)
        self.memory = LaneMemory()
        self._pool = AsyncpgPool(engine, pool, driver_options(pool, **PLANNING))
        self.numbered = NumberedStatements(self.name, self.encode)

    @asynccontextmanager
    async def transaction(self, *, write: bool) -> AsyncIterator[Connection]:
        async with self._pool.connection() as driver:
            await driver.execute(BEGIN)
            try:
                yield AsyncpgConnection(driver, self.numbered)
            finally:
                if driver.is_in_transaction() and not driver.is_closed():
                    await driver.execute("ROLLBACK")

    @asynccontextmanager
    async def single_statement(self) -> AsyncIterator[Connection]:
        async with self._pool.connection() as driver:
            yield AsyncpgConnection(driver, self.numbered)

    async def close(self) -> None:
        await self._pool.close()
        await super().close()

    def encode(self, value: object) -> object:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return json.dumps(value, default=_json_value, ensure_ascii=False)
        return value

    def decode(self, row: RowMapping) -> Row:
        return cast(Row, row)

    async def insert_tasks(self, session: Session, tenant_id: str, tasks: Sequence[Row]) -> None:
        numbered = [
            {name: value for name, value in task.items() if name != "payload"} | {"position": position}
            for position, task in enumerate(tasks, start=1)
        ]
        inserted = await session.rows(
            "insert_tasks",
            tenant_id=tenant_id,
            now=session.now,
            tasks=numbered,
            payloads=[task["payload"] for task in tasks],
        )
        if len(inserted) < len(tasks):
            raise Raced

    async def restore_dead_letters(self, session: Session, letters: Sequence[Row]) -> None:
        restored = await session.rows("restore_many", now=session.now, letters=list(letters))
        if len(restored) < len(letters):
            raise Raced

    async def has_overdue(self, session: Session, wish: ReserveRequest, queues: Sequence[Queue]) -> bool:
        lanes = self.memory.begin_queues(session, wish, queues)
        probe = await session.row("probe_overdue", lanes=[lane.parameters() for lane in lanes], now=session.now)
        return probe is not None and bool(probe["overdue"])

    async def claim(
        self, session: Session, wish: ReserveRequest, lanes: Sequence[Lane], grants: Sequence[Grant]
    ) -> Claimed:
        begun = self.memory.begin(session, wish, ((lane.queue_id, lane.type) for lane in lanes))
        is_one_queue = len(lanes) == 1 and lanes[0].type is None
        rows = await session.rows(
            "claim_queue" if is_one_queue else "claim_lanes",
            now=session.now,
            lanes=[lane_record(lane) | known.parameters() for lane, known in zip(lanes, begun, strict=True)],
            limit=min(lanes[0].room, len(grants)) if is_one_queue else len(grants),
            exclude_ids=list(wish.exclude_ids),
            max_bytes=wish.max_bytes,
            **grant_parameters([grant.worker_id for grant in grants], [grant.token for grant in grants]),
        )
        rows = sorted(rows, key=lambda row: row["position"] or 0)
        claimed = [row for row in rows if row["position"] is not None]
        # What was asked to be passed over is not behind an end. What is overdue was looked for when all this began.
        learns = session.is_now and not wish.exclude_ids
        ends = ends_of(begun, rows, session.began_at) if learns else []
        raced = not claimed and rows[0]["candidates"] > 0
        return Claimed(claimed, raced=raced, learn=lambda: self.memory.learn(ends))

    async def has_ready(self, session: Session, wish: ReserveRequest, queue_id: int) -> bool:
        [lane] = self.memory.begin(session, wish, [(queue_id, None)])
        if lane.had_ready:
            return True
        has_ready = await super().has_ready(session, wish, queue_id)
        if has_ready and session.is_now:
            self.memory.had_ready.keep(lane.key, has_ready)
        return has_ready

    async def next_due_at(self, session: Session, wish: ReserveRequest, lanes: Sequence[Lane]) -> datetime | None:
        begun = self.memory.begin(session, wish, ((lane.queue_id, lane.type) for lane in lanes))
        rows = await session.rows("next_available", lanes=[lane.upcoming() for lane in begun])
        if session.is_now:
            self.memory.learn_leases(begun, rows)
        known = (lane.lease_ends_at for lane in begun)
        next_at = min(at for at in (NEVER, *known, *(row["next_at"] for row in rows)) if at is not None)
        return None if next_at == NEVER else next_at

    def kind_of(self, error: Exception) -> ErrorKind:
        cause = error.orig if isinstance(error, DBAPIError) else error
        state = str(getattr(cause, "sqlstate", None) or "")
        if state == DUPLICATE:
            return ErrorKind.DUPLICATE
        if state in TRANSIENT:
            return ErrorKind.TRANSIENT
        if state == LOCK_TIMEOUT:
            return ErrorKind.LOCKED
        if not state or state.startswith(UNREACHABLE_CLASSES):
            return ErrorKind.UNREACHABLE
        return ErrorKind.OTHER

    async def check_server(self, connection: AsyncConnection) -> None:
        row = (await connection.execute(text(SERVER_SETTINGS))).one()
        if row.version < OLDEST_VERSION:
            raise UnsuitableServer(f"PostgreSQL {OLDEST_VERSION // 10000} or newer is needed.")
        if row.encoding != "UTF8":
            raise UnsuitableServer(f"The database's encoding must be UTF8; it is {row.encoding}.")

    @asynccontextmanager
    async def migration_lock(self, connection: AsyncConnection) -> AsyncIterator[None]:
        await connection.execute(text("SET LOCAL lock_timeout = 0"))
        # Ends with the transaction that the migrations run in.
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        yield


def _json_value(value: object) -> str:
    assert isinstance(value, datetime)
    return value.astimezone(UTC).isoformat()
