"""What the archive does in each dialect's own way."""

import fcntl
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.pipeline.errors import PipelineError, PipelineStopped
from app.repository.dialect import Dialect
from app.repository.grants import joined

TAKEN = "Another archiver is at work on this database: let it finish."
LOST = "The connection that held the lock on the database was lost."
# Any number will do, as long as all archivers take the same.
ADVISORY_LOCK = 0x4C656173654D52
MYSQL_LOCK = "concat('leasemq.archive.', left(sha2(database(), 256), 32))"

# Raises PipelineStopped if the lock is no longer held.
CheckLock = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Pace:
    """`rows`: deleted by a transaction; `rest`: after it, as a share of its time; `at_once`: how many transactions."""

    rows: int
    rest: float
    at_once: int = 1


class Adapter(ABC):
    """A dialect as the archive needs it."""

    pace: Pace

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @abstractmethod
    def keys(self, ids: Sequence[int], instants: Sequence[int]) -> Mapping[str, object]:
        """Ids, which are in order, and instants as the parameters of a statement that deletes."""

    @abstractmethod
    def lock(self) -> AbstractAsyncContextManager[CheckLock]:
        """Keeps other archivers out of the database; it ends with the process, however that ends."""

    @asynccontextmanager
    async def _lock_of_connection(self, take: str, look: str, give_back: str) -> AsyncIterator[CheckLock]:
        """A lock that the server gives up when the connection ends; no transaction is open meanwhile."""
        async with self.dialect.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            if not (await connection.execute(text(take))).scalar_one():
                raise PipelineError(TAKEN)

            async def check() -> None:
                try:
                    held = (await connection.execute(text(look))).scalar_one()
                except (DBAPIError, OSError) as error:
                    raise PipelineStopped(LOST) from error
                if not held:
                    raise PipelineStopped(LOST)

            try:
                yield check
            finally:
                with suppress(SQLAlchemyError, OSError):
                    await connection.execute(text(give_back))


class PostgreSQLAdapter(Adapter):
    # A transaction of some hundredths of a second; in smaller ones the disk is waited for more often.
    pace = Pace(rows=10_000, rest=0.1, at_once=2)

    def keys(self, ids: Sequence[int], instants: Sequence[int]) -> Mapping[str, object]:
        # As texts: the driver takes longer over an array than the server over its rows.
        texts = {"ids": joined(map(str, ids)), "instants": joined(map(str, instants))}
        return {"low": ids[0], "high": ids[-1], **texts}

    def lock(self) -> AbstractAsyncContextManager[CheckLock]:
        # The server's locks are of one database each.
        return self._lock_of_connection(
            take=f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})",
            look=(
                "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
                " AND pid = pg_backend_pid() AND database = (SELECT oid FROM pg_database"
                " WHERE datname = current_database())"
                f" AND (CAST(classid AS bigint) << 32) + CAST(objid AS bigint) = {ADVISORY_LOCK})"
            ),
            give_back=f"SELECT pg_advisory_unlock({ADVISORY_LOCK})",
        )


class MySQLAdapter(Adapter):
    pace = Pace(rows=2000, rest=0.1)

    def keys(self, ids: Sequence[int], instants: Sequence[int]) -> Mapping[str, object]:
        return {"keys": json.dumps(list(zip(ids, instants, strict=True)))}

    def lock(self) -> AbstractAsyncContextManager[CheckLock]:
        return self._lock_of_connection(
            take=f"SELECT get_lock({MYSQL_LOCK}, 0)",
            look=f"SELECT is_used_lock({MYSQL_LOCK}) = connection_id()",
            give_back=f"SELECT release_lock({MYSQL_LOCK})",
        )


class SQLiteAdapter(Adapter):
    # There is one writer: the queue's own must get a turn.
    pace = Pace(rows=1000, rest=1.0)

    def keys(self, ids: Sequence[int], instants: Sequence[int]) -> Mapping[str, object]:
        return {"keys": json.dumps(list(zip(ids, instants, strict=True)))}

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[CheckLock]:
        """A lock on a file beside the database, which the system gives up when the process ends."""
        assert self.dialect.engine.url.database is not None
        with _file_lock(Path(f"{self.dialect.engine.url.database}.archive-lock")):

            async def check() -> None:
                """It cannot be lost."""

            yield check


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PipelineError(TAKEN) from error
        yield


ADAPTERS: dict[str, type[Adapter]] = {
    "postgresql": PostgreSQLAdapter,
    "mysql": MySQLAdapter,
    "sqlite": SQLiteAdapter,
}
