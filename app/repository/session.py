"""Transactions: one repository call is one of them, begun, retried and ended here."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Generic, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.domain.errors import Contended, Unavailable
from app.domain.queue import Queue
from app.domain.task import AttemptLog
from app.domain.transitions import EndedAttempt
from app.repository.connection import Connection, Row
from app.repository.dialect import Dialect, ErrorKind, Raced
from app.repository.queue_records import queue_of
from app.repository.schema import SchemaMismatch, check_schema

Result = TypeVar("Result")
AttemptsLostHook = Callable[[int], None]

MAX_TRIES = 20
LOCKED_TRIES = 3
ATTEMPT_LOG_PAUSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scope:
    """The queues that a transaction is about, by name."""

    tenant_id: str = ""
    queues: Collection[str] = ()


ANY = Scope()


class Ending(Enum):
    """How a transaction ends that goes well."""

    READ = "nothing was changed"
    COMMIT = "all of it is kept"
    ROLLBACK = "all of it is taken back"


class AttemptLogFailed(Exception):
    """The log could not be written: the transaction is run again without it."""


class Session:
    """One transaction that has begun: runs named statements, and knows the instant at which they happen."""

    def __init__(self, dialect: Dialect, connection: Connection, attempt_log: AttemptLog, *, log: bool) -> None:
        self.dialect = dialect
        self.now = self.began_at = datetime.max
        self.queues: dict[str, Queue] = {}
        self.attempts_lost = 0
        # What is done when all of this is there for others to see.
        self.once_committed: list[Callable[[], None]] = []
        self._given_now: datetime | None = None
        self._connection = connection
        self._attempt_log = attempt_log
        self._log = log

    async def open(self, scope: "Scope", now: datetime | None) -> None:
        """Looks at the clock and at the queues that the transaction is about, in one go."""
        rows = await self.rows(
            "open", now=now or self.dialect.clock(), tenant_id=scope.tenant_id, names=list(scope.queues)
        )
        self.now = rows[0]["now"]
        queues = [queue_of(row) for row in rows if row["id"] is not None]
        self.queues = {queue.name: queue for queue in queues}

    async def begin(self, scope: "Scope", now: datetime | None) -> None:
        self._given_now = now
        await self.open(scope, now)
        self.began_at = self.now

    async def look_at_clock_again(self) -> None:
        """Time has passed since the transaction began, for instance in waiting for a lock."""
        rows = await self.rows("open", now=self._given_now or self.dialect.clock(), tenant_id="", names=[])
        self.now = rows[0]["now"]

    @property
    def is_now(self) -> bool:
        """Whether it happens by the database's own clock."""
        return self._given_now is None

    def living_queues(self) -> dict[str, Queue]:
        """Those of the queues that are there by now."""
        return {name: queue for name, queue in self.queues.items() if queue.is_alive(self.now)}

    async def rows(self, statement: str, **parameters: object) -> Sequence[Row]:
        """Runs a statement and returns its rows."""
        return await self._connection.fetch(statement, parameters)

    async def row(self, statement: str, **parameters: object) -> Row | None:
        """The only row of a statement that has at most one."""
        rows = await self.rows(statement, **parameters)
        return rows[0] if rows else None

    async def run(self, statement: str, **parameters: object) -> None:
        """Runs a statement that gives no rows; that it failed may show only later, at the latest at the commit."""
        await self._connection.run(statement, parameters)

    async def run_each(self, statement: str, records: Sequence[Row]) -> None:
        """Likewise once for each record."""
        await self._connection.run_each(statement, records)

    async def count_returns(self, queue_ids: Collection[int]) -> None:
        """Tells whoever remembers where these queues begin that something came back, and may stand before that."""
        if queue_ids and self.dialect.remembers_starts:
            await self.run("count_returns", queue_ids=sorted(queue_ids))

    async def log_attempts(self, tenant_id: str, attempts: Sequence[EndedAttempt]) -> None:
        """Appends to the attempt log what its setting asks for; its failure never fails the caller's transition."""
        wanted = [attempt for attempt in attempts if self._is_wanted(attempt)]
        if wanted:
            records = [_attempt_record(attempt) for attempt in wanted]
            await self._append(len(wanted), "insert_attempts", tenant_id=tenant_id, attempts=records)

    async def log_acked(self, seqs: Sequence[int]) -> None:
        """Likewise for tasks that are acked now, out of their rows."""
        if seqs and is_logged(self._attempt_log, success=True):
            await self._append(len(seqs), "log_acked", seqs=seqs, at=self.now)

    async def _append(self, number: int, statement: str, **parameters: object) -> None:
        if not self._log:
            self.attempts_lost += number
            return
        # What fails before it is not the log's fault.
        await self._connection.flush()
        try:
            await self.rows(statement, **parameters)
        except self.dialect.errors as error:
            if self.dialect.kind_of(error) is ErrorKind.UNREACHABLE:
                raise
            raise AttemptLogFailed from error

    def _is_wanted(self, attempt: EndedAttempt) -> bool:
        return is_logged(self._attempt_log, success=attempt.success)


@dataclass(frozen=True, slots=True)
class Work(Generic[Result]):
    """What is to be done in one transaction, when (None: now), about which queues, and how it ends."""

    run: Callable[[Session], Awaitable[Result]]
    now: datetime | None
    scope: Scope
    ending: Ending


class Database:
    """Runs work in transactions: deadlocks and races are retried, and every failure is one of ours."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        timeout_seconds: float,
        attempt_log: AttemptLog,
        on_attempts_lost: AttemptsLostHook,
    ) -> None:
        self.dialect = dialect
        self._timeout_seconds = timeout_seconds
        self._attempt_log = attempt_log
        self._on_attempts_lost = on_attempts_lost
        self._log_paused_until = 0.0
        self._failures: tuple[type[Exception], ...] = (*dialect.errors, OSError, TimeoutError)

    async def read(
        self, work: Callable[[Session], Awaitable[Result]], now: datetime | None = None, scope: Scope = ANY
    ) -> Result:
        """Runs work that changes nothing."""
        return await self._run(Work(work, now, scope, Ending.READ))

    async def write(
        self, work: Callable[[Session], Awaitable[Result]], now: datetime | None = None, scope: Scope = ANY
    ) -> Result:
        """Runs work and commits it: when this returns, it is durable; when it raises, nothing was changed."""
        return await self._run(Work(work, now, scope, Ending.COMMIT))

    async def rehearse(self, work: Callable[[Session], Awaitable[Result]], now: datetime | None = None) -> Result:
        """Runs work and takes it back, to see what it would do."""
        return await self._run(Work(work, now, ANY, Ending.ROLLBACK))

    async def at_once(self, statement: str, **parameters: object) -> Sequence[Row] | None:
        """Runs a statement that is a transaction by itself; None if it could not be run and nothing was changed."""
        sent = False
        try:
            async with asyncio.timeout(self._timeout_seconds), self.dialect.single_statement() as connection:
                sent = True
                return await connection.fetch(statement, parameters)
        except self._failures as error:
            known = isinstance(error, self.dialect.errors) and self.dialect.kind_of(error) is not ErrorKind.UNREACHABLE
            # Who has waited for a connection in vain need not do so again.
            if known or (not sent and not isinstance(error, TimeoutError)):
                return None
            logger.warning("database unavailable: %s", type(error).__name__)
            raise Unavailable("The database does not answer.", applied=None if sent else False) from error

    def logs(self, *, success: bool) -> bool | None:
        """Whether attempts that end so are logged; None if they should be, but cannot at the moment."""
        wanted = is_logged(self._attempt_log, success=success)
        return None if wanted and not self._may_log() else wanted

    async def _run(self, work: Work[Result]) -> Result:
        log = self._may_log()
        for attempt in range(MAX_TRIES):
            transaction = Transaction(work, self.dialect, self._attempt_log, log=log)
            try:
                async with asyncio.timeout(self._timeout_seconds) as limit:
                    result = await transaction.run(limit)
            except Raced:
                continue
            except AttemptLogFailed as failure:
                self._pause_log(failure)
                log = False
            except self._failures as error:
                if not self._may_retry(error, transaction, attempt):
                    raise self._translate_error(error, transaction) from error
                await asyncio.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 5)))
            else:
                self._count_lost(transaction.attempts_lost)
                return result
        raise Contended("The database is too contended to answer.")

    async def check(self) -> None:
        """Raises `Unavailable` unless the database answers and its schema is this code's."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await check_schema(self.dialect)
        except SchemaMismatch as error:
            raise Unavailable(str(error)) from error
        except (DBAPIError, PoolTimeout, OSError, TimeoutError) as error:
            raise Unavailable("The database does not answer.") from error

    def _may_retry(self, error: Exception, transaction: "Transaction[Result]", attempt: int) -> bool:
        if not isinstance(error, self.dialect.errors):
            return False
        kind = self.dialect.kind_of(error)
        if kind is ErrorKind.UNREACHABLE:
            # A pooled connection may have died unnoticed: one more try gets a new one.
            return attempt == 0 and not transaction.committing
        if kind is ErrorKind.LOCKED:
            # It may have been a deadlock that nobody had noticed yet.
            return attempt < LOCKED_TRIES
        return kind in {ErrorKind.TRANSIENT, ErrorKind.DUPLICATE}

    def _translate_error(self, error: Exception, transaction: "Transaction[Result]") -> Exception:
        kind = self.dialect.kind_of(error) if isinstance(error, self.dialect.errors) else ErrorKind.UNREACHABLE
        if kind is ErrorKind.OTHER:
            return error
        logger.warning("database unavailable: %s", type(error.__cause__ or error).__name__)
        if kind is ErrorKind.LOCKED and self.dialect.writers > 1:
            return Contended("Somebody else holds what this is about.")
        # A commit that the database has refused is one that was not made.
        unknown = transaction.committing and kind is ErrorKind.UNREACHABLE
        return Unavailable("The database does not answer.", applied=None if unknown else False)

    def _may_log(self) -> bool:
        return time.monotonic() >= self._log_paused_until

    def _pause_log(self, failure: AttemptLogFailed) -> None:
        """A log that is locked would make every settle wait for its lock: leave it alone for a moment."""
        self._log_paused_until = time.monotonic() + ATTEMPT_LOG_PAUSE_SECONDS
        cause = failure.__cause__
        logger.warning("attempt log not written: %s", type(getattr(cause, "orig", None) or cause).__name__)

    def _count_lost(self, attempts: int) -> None:
        if attempts:
            self._on_attempts_lost(attempts)


class Transaction(Generic[Result]):
    """One try at some work; `committing` tells whether its outcome may be unknown."""

    def __init__(self, work: Work[Result], dialect: Dialect, attempt_log: AttemptLog, *, log: bool) -> None:
        self.committing = False
        self.attempts_lost = 0
        self._work = work
        self._dialect = dialect
        self._attempt_log = attempt_log
        self._log = log

    async def run(self, limit: asyncio.Timeout) -> Result:
        work = self._work
        async with self._dialect.transaction(write=work.ending is not Ending.READ) as connection:
            # Waiting for a connection may swallow the cancellation by which the time limit speaks.
            if limit.expired():
                raise TimeoutError
            session = Session(self._dialect, connection, self._attempt_log, log=self._log)
            await session.begin(work.scope, work.now)
            result = await work.run(session)
            await self._end(connection, session)
            self.attempts_lost = session.attempts_lost
            return result

    async def _end(self, connection: Connection, session: Session) -> None:
        if self._work.ending is not Ending.COMMIT:
            await connection.rollback()
            return
        self.committing = True
        await connection.commit()
        self.committing = False
        for action in session.once_committed:
            action()


def is_logged(attempt_log: AttemptLog, *, success: bool) -> bool:
    return attempt_log is AttemptLog.ALL or (attempt_log is AttemptLog.FAILURES and not success)


def _attempt_record(attempt: EndedAttempt) -> dict[str, object]:
    return {name: getattr(attempt, name) for name in EndedAttempt.__slots__}
