"""A log that cannot be written never stands in the way of a task; the loss is counted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import text

from app.domain.task import ReservedTask, Status
from app.repository import session
from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect, open_repository
from app.repository.pool import PoolSettings
from app.repository.schema import migrate
from tests.conformance.steps import TIMEOUT_SECONDS, Store, ack_item, at, new_task, settled
from tests.conftest import MakeDatabase

# How another connection locks a table alone; SQLite has only the lock of the whole database.
TABLE_LOCKS = {
    "postgresql": "LOCK TABLE mq_task_attempts IN ACCESS EXCLUSIVE MODE",
    "mysql": "LOCK TABLES mq_task_attempts WRITE",
}


@dataclass
class Fragile:
    """A store whose log the test may spoil."""

    dialect: Dialect
    store: Store
    lost: list[int]
    log_is_dropped: bool = False

    async def drop_log(self) -> None:
        await self._execute("ALTER TABLE mq_task_attempts RENAME TO mislaid")
        self.log_is_dropped = True

    async def restore_log(self) -> None:
        await self._execute("ALTER TABLE mislaid RENAME TO mq_task_attempts")
        self.log_is_dropped = False

    async def _execute(self, statement: str) -> None:
        async with self.dialect.connect(write=True) as connection:
            await connection.execute(text(statement))
            await connection.commit()

    @asynccontextmanager
    async def locked_log(self) -> AsyncIterator[None]:
        """The log while somebody else has locked it."""
        if self.dialect.name not in TABLE_LOCKS:
            pytest.skip("a table cannot be locked alone on this database")
        async with self.dialect.connect(write=True) as connection:
            await connection.execute(text(TABLE_LOCKS[self.dialect.name]))
            yield
            # The lock ends with its connection.
            await connection.invalidate()


@pytest.fixture(scope="session")
async def fragile_url(dialect_name: str, make_database: MakeDatabase) -> str:
    """A database of these tests' own."""
    url = make_database(dialect_name)
    dialect = connect_dialect(url)
    await migrate(dialect)
    await dialect.close()
    return url


@pytest.fixture
async def fragile(fragile_url: str, tenant: str) -> AsyncIterator[Fragile]:
    dialect = connect_dialect(fragile_url, PoolSettings(lock_timeout_seconds=0.2))
    lost: list[int] = []
    repository = open_repository(dialect, timeout_seconds=TIMEOUT_SECONDS, on_attempts_lost=lost.append)
    fragile = Fragile(dialect, Store(repository, tenant), lost)
    yield fragile
    if fragile.log_is_dropped:
        await fragile.restore_log()
    await repository.close()


@dataclass
class Clock:
    """The clock by which the log is left alone for a moment."""

    seconds: float = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(session, "time", clock)
    return clock


async def lease_three(store: Store) -> list[ReservedTask]:
    await store.enqueue_many(*(new_task(name) for name in "abc"))
    return list((await store.reserve(limit=3)).tasks)


async def settle_without_a_log(fragile: Fragile) -> None:
    """Every way out of a lease, each of which would write to the log."""
    store = fragile.store
    acked, nacked, failed = await lease_three(store)
    await fragile.drop_log()
    settled(await store.ack(acked, at(1)))
    settled(await store.nack(nacked, at(1), delay_seconds=0))
    settled(await store.fail(failed, at(1)))


async def test_missing_log_does_not_stop_ack_nack_and_fail(fragile: Fragile) -> None:
    await settle_without_a_log(fragile)
    statuses = [await fragile.store.status(name, at(1)) for name in "abc"]
    assert statuses == [Status.DONE, Status.READY, Status.DEAD]


async def test_missing_log_does_not_stop_release(fragile: Fragile) -> None:
    leased = await fragile.store.lease("a")
    await fragile.drop_log()
    settled(await fragile.store.release(leased, at(1)))
    assert fragile.lost == []


async def test_missing_log_does_not_stop_reserve_from_finding_lost_leases(fragile: Fragile) -> None:
    await fragile.store.lease("a")
    await fragile.drop_log()
    assert await fragile.store.reserve_ids(at(31)) == ["a"]
    assert fragile.lost == [1]


async def test_missing_log_does_not_stop_forced_cancel(fragile: Fragile) -> None:
    await fragile.store.lease("a")
    await fragile.drop_log()
    await fragile.store.cancel("a", at(1), force=True)
    assert await fragile.store.status("a", at(1)) is Status.CANCELLED


async def test_every_lost_attempt_is_counted(fragile: Fragile) -> None:
    await settle_without_a_log(fragile)
    assert sum(fragile.lost) == 3


async def test_lost_attempts_of_a_batch_are_counted_once(fragile: Fragile) -> None:
    tasks = await lease_three(fragile.store)
    await fragile.drop_log()
    await fragile.store.repository.ack_many(fragile.store.tenant, [ack_item(task) for task in tasks], at(1))
    assert fragile.lost == [3]


async def test_log_is_written_again_once_it_is_back(fragile: Fragile, clock: Clock) -> None:
    first, second, _ = await lease_three(fragile.store)
    await fragile.drop_log()
    settled(await fragile.store.ack(first, at(1)))
    await fragile.restore_log()
    clock.seconds += session.ATTEMPT_LOG_PAUSE_SECONDS
    settled(await fragile.store.ack(second, at(2)))
    assert await fragile.store.attempts("a", at(3)) == []
    assert [attempt.finished_at for attempt in await fragile.store.attempts("b", at(3))] == [at(2)]
    assert fragile.lost == [1]


async def test_log_is_left_alone_for_a_moment_after_it_failed(fragile: Fragile, clock: Clock) -> None:
    first, second, _ = await lease_three(fragile.store)
    await fragile.drop_log()
    settled(await fragile.store.ack(first, at(1)))
    await fragile.restore_log()
    clock.seconds += session.ATTEMPT_LOG_PAUSE_SECONDS / 2
    settled(await fragile.store.ack(second, at(2)))
    assert await fragile.store.attempts("b", at(3)) == []
    assert fragile.lost == [1, 1]


async def test_locked_log_does_not_stop_ack_nack_and_fail(fragile: Fragile) -> None:
    store = fragile.store
    acked, nacked, failed = await lease_three(store)
    async with fragile.locked_log():
        settled(await store.ack(acked, at(1)))
        settled(await store.nack(nacked, at(1), delay_seconds=0))
        settled(await store.fail(failed, at(1)))
        assert sum(fragile.lost) == 3
    assert [await store.status(name, at(1)) for name in "abc"] == [Status.DONE, Status.READY, Status.DEAD]


async def test_locked_log_does_not_stop_reserve_from_finding_lost_leases(fragile: Fragile) -> None:
    await fragile.store.lease("a")
    async with fragile.locked_log():
        assert await fragile.store.reserve_ids(at(31)) == ["a"]
    assert fragile.lost == [1]


async def test_log_is_written_again_once_it_is_unlocked(fragile: Fragile, clock: Clock) -> None:
    first, second, _ = await lease_three(fragile.store)
    async with fragile.locked_log():
        settled(await fragile.store.ack(first, at(1)))
    clock.seconds += session.ATTEMPT_LOG_PAUSE_SECONDS
    settled(await fragile.store.ack(second, at(2)))
    assert await fragile.store.attempts("a", at(3)) == []
    assert len(await fragile.store.attempts("b", at(3))) == 1
