"""What each SQL dialect does in its own way; everything else is shared."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from sqlalchemy import RowMapping, TextClause
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.commands import ReserveRequest
from app.domain.queue import Queue
from app.domain.transitions import Move
from app.repository.connection import Connection, Row, SqlalchemyConnection
from app.repository.pool import PoolSettings
from app.repository.records import move_record
from app.repository.statements import leave_out, load_statements, optional_parameters

if TYPE_CHECKING:
    from app.repository.session import Session


class ErrorKind(Enum):
    """What a database error means for the transaction that met it."""

    DUPLICATE = "somebody else took the key meanwhile: look again"
    TRANSIENT = "a deadlock or the like: the same transaction may be run again"
    LOCKED = "somebody else held a lock for too long"
    UNREACHABLE = "the connection is gone or never was"
    OTHER = "a bug, or a schema that is not ours"


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue, or one type of a queue: each is in order by itself, and has an index that says so.

    `room` is how many more tasks the queue may deliver, and `place` its turn among equal priorities.
    """

    queue_id: int
    type: str | None
    place: int
    room: int
    lease_until: datetime


def lane_record(lane: Lane) -> dict[str, object]:
    return {name: getattr(lane, name) for name in Lane.__slots__}


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease that is to be given: its token, and the worker that it is for."""

    token: str
    worker_id: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The rows that were leased, in order: the one at index i under grant i.

    `raced`: there were candidates, but others were faster at every one of them. `learn` lets the next claim begin where
    this one ended; it is for when this one is committed, and nothing was left overdue.
    """

    rows: Sequence[Row]
    raced: bool = False
    learn: Callable[[], None] = lambda: None


class Dialect(ABC):
    """One SQL database, and how it is spoken to."""

    name: str
    # How many transactions of a kind are worth having under way at once: more would make each of them smaller.
    writers = 2
    # How many tasks are worth a transaction of their own beside another that is about the same.
    worthwhile = 100
    # Whether replicas remember where the ready tasks of a queue begin, and must hear of what comes back before them.
    remembers_starts = False
    # Whether one sees how long others' transactions have been open.
    tells_of_transactions = True
    # Indexes that others have and that it does without.
    merged_indexes: frozenset[str] = frozenset()
    # What its driver raises.
    errors: tuple[type[Exception], ...] = (DBAPIError, PoolTimeout)

    def __init__(self, engine: AsyncEngine, pool: PoolSettings) -> None:
        self.engine = engine
        self.statements = load_statements(self.name)
        self._optional = {
            name: optional for name, sql in self.statements.items() if (optional := optional_parameters(sql))
        }

    @asynccontextmanager
    async def connect(self, *, write: bool) -> AsyncIterator[AsyncConnection]:
        """A connection for work on the schema, with a transaction begun."""
        async with self.engine.connect() as connection:
            await connection.begin()
            yield connection

    @asynccontextmanager
    async def transaction(self, *, write: bool) -> AsyncIterator[Connection]:
        """A transaction that has begun; one that is not ended is taken back."""
        async with self.connect(write=write) as connection:
            yield SqlalchemyConnection(self, connection)

    @asynccontextmanager
    async def single_statement(self) -> AsyncIterator[Connection]:
        """A connection for one statement that is a transaction by itself."""
        async with self.transaction(write=True) as connection:
            yield connection
            await connection.commit()

    async def close(self) -> None:
        await self.engine.dispose()

    def clock(self) -> datetime | None:
        """The instant at which a transaction happens, if it is not the database that tells."""
        return None

    def prepare(self, statement: str, parameters: Mapping[str, object]) -> tuple[TextClause, dict[str, object]]:
        """A named statement and its parameters as the driver takes them."""
        sql, optional = self.statements[statement], self._optional.get(statement)
        if optional:
            absent = frozenset(name for name in optional if parameters[name] is None)
            sql = leave_out(sql, absent)
            parameters = {name: value for name, value in parameters.items() if name not in absent}
        return sql, {name: self.encode(value) for name, value in parameters.items()}

    @abstractmethod
    def encode(self, value: object) -> object:
        """A Python value as a bind parameter: instants, lists, and lists of records in the dialect's own way."""

    @abstractmethod
    def decode(self, row: RowMapping) -> Row:
        """A result row with instants as aware UTC datetimes."""

    @abstractmethod
    async def insert_tasks(self, session: "Session", tenant_id: str, tasks: Sequence[Row]) -> None:
        """Inserts all of the tasks, or fails as one whose id or key was taken meanwhile."""

    async def archive(self, session: "Session", moves: Sequence[Move]) -> None:
        """Copies finished tasks into the history; the live rows go in the same transaction."""
        if moves:
            await session.run("archive_many", moves=[move_record(move) for move in moves])

    @abstractmethod
    async def restore_dead_letters(self, session: "Session", letters: Sequence[Row]) -> None:
        """Makes live tasks of all of the dead letters, or fails likewise."""

    async def has_overdue(self, session: "Session", wish: ReserveRequest, queues: Sequence[Queue]) -> bool:
        """Whether time has changed anything in these queues that nobody has moved yet."""
        probe = await session.row("probe_overdue", queue_ids=[queue.id for queue in queues], now=session.now)
        return probe is not None and bool(probe["overdue"])

    @abstractmethod
    async def claim(
        self, session: "Session", wish: ReserveRequest, lanes: Sequence[Lane], grants: Sequence[Grant]
    ) -> Claimed:
        """Leases the best ready tasks of the lanes, at most one for each grant."""

    async def has_ready(self, session: "Session", wish: ReserveRequest, queue_id: int) -> bool:
        """Whether a queue has something that only its rate holds back."""
        return bool(await session.rows("queues_with_ready", queue_ids=[queue_id]))

    async def next_due_at(self, session: "Session", wish: ReserveRequest, lanes: Sequence[Lane]) -> datetime | None:
        """When the next task of the lanes is due, or comes back."""
        row = await session.row("next_available", lanes=[lane_record(lane) for lane in lanes])
        return None if row is None else row["next_at"]

    @abstractmethod
    def kind_of(self, error: Exception) -> ErrorKind:
        """What an error of this database's driver means."""

    @abstractmethod
    async def check_server(self, connection: AsyncConnection) -> None:
        """Raises `UnsuitableServer` for one that the statements cannot run on."""

    @abstractmethod
    def migration_lock(self, connection: AsyncConnection) -> AbstractAsyncContextManager[None]:
        """Held while the schema is looked at and changed, so that replicas that start together take turns."""


class UnsuitableServer(Exception):
    """The database server is too old, or set up in a way that would corrupt data; the text says how."""


class Raced(Exception):
    """Somebody else was faster: nothing is wrong, the transaction only has to look again."""
