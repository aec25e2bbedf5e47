"""The attempt log: one entry for every delivery that counted."""

from collections.abc import AsyncIterator

import pytest

from app.domain.commands import AttemptKey
from app.domain.errors import TaskNotFound
from app.domain.task import Attempt, AttemptLog, Status
from app.repository.factory import connect_dialect, open_repository
from app.repository.protocol import Repository
from tests.conformance.steps import T0, TIMEOUT_SECONDS, Store, at, settled


async def test_acked_attempt(store: Store) -> None:
    settled(await store.ack(await store.lease("a"), at(5)))
    assert await store.attempts("a", at(5)) == [Attempt(1, "worker-1", T0, at(5), success=True, reason=None)]


async def test_nacked_attempt(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), at(5), error="timeout"))
    assert await store.attempts("a", at(5)) == [Attempt(1, "worker-1", T0, at(5), success=False, reason="timeout")]


async def test_nacked_attempt_without_an_error(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), at(5)))
    assert await store.attempts("a", at(5)) == [Attempt(1, "worker-1", T0, at(5), success=False, reason=None)]


async def test_failed_attempt(store: Store) -> None:
    settled(await store.fail(await store.lease("a"), at(5), reason="no such user"))
    assert await store.attempts("a", at(5)) == [Attempt(1, "worker-1", T0, at(5), success=False, reason="no such user")]


async def test_running_attempt(store: Store) -> None:
    await store.lease("a")
    assert await store.attempts("a", at(5)) == [Attempt(1, "worker-1", T0, None, success=None, reason=None)]


async def test_extended_attempt_began_when_it_began(store: Store) -> None:
    await store.extend(await store.lease("a"), at(20))
    assert (await store.attempts("a", at(21)))[0].started_at == T0


async def test_lost_lease_ends_when_its_lease_did(store: Store) -> None:
    await store.lease("a")
    expected = [Attempt(1, "worker-1", T0, at(30), success=False, reason="lease expired")]
    assert await store.attempts("a", at(1000)) == expected


async def test_lost_lease_is_logged_when_another_worker_takes_the_task(store: Store) -> None:
    await store.lease("a")
    await store.reserve_one(at(50), worker_id="worker-2")
    assert await store.attempts("a", at(51)) == [
        Attempt(1, "worker-1", T0, at(30), success=False, reason="lease expired"),
        Attempt(2, "worker-2", at(50), None, success=None, reason=None),
    ]


async def test_lost_last_lease_is_logged(store: Store) -> None:
    await store.lease("a", max_attempts=1)
    assert await store.status("a", at(50)) is Status.DEAD
    assert [attempt.finished_at for attempt in await store.attempts("a", at(50))] == [at(30)]


async def test_forced_cancel_is_logged(store: Store) -> None:
    await store.lease("a")
    await store.cancel("a", at(5), force=True)
    [attempt] = await store.attempts("a", at(5))
    assert (attempt.finished_at, attempt.success, attempt.reason) == (at(5), False, "cancelled")


async def test_cancel_of_a_waiting_task_is_no_attempt(store: Store) -> None:
    await store.enqueue("a")
    await store.cancel("a")
    assert await store.attempts("a") == []


async def test_worker_without_a_name(store: Store) -> None:
    await store.enqueue("a")
    leased = await store.reserve_one(worker_id=None)
    assert (await store.attempts("a"))[0].worker_id is None
    settled(await store.ack(leased))
    assert (await store.attempts("a"))[0].worker_id is None


async def test_attempts_are_in_order_of_start(store: Store) -> None:
    await store.enqueue("a", max_attempts=0)
    settled(await store.nack(await store.reserve_one(at(1)), at(2), error="one", delay_seconds=0))
    await store.reserve_one(at(3))
    settled(await store.release(await store.reserve_one(at(50)), at(51)))
    settled(await store.nack(await store.reserve_one(at(60)), at(61), error="three", delay_seconds=0))
    await store.reserve_one(at(70))
    attempts = await store.attempts("a", at(71))
    assert [attempt.attempt_no for attempt in attempts] == [1, 2, 3, 4]
    assert [attempt.reason for attempt in attempts] == ["one", "lease expired", "three", None]
    assert [attempt.finished_at for attempt in attempts] == [at(2), at(33), at(61), None]


async def test_attempts_go_on_after_requeue(store: Store) -> None:
    await store.bury("a", reason="first life")
    await store.requeue("a", at(1))
    settled(await store.ack(await store.reserve_one(at(2)), at(3)))
    attempts = await store.attempts("a", at(4))
    assert [(attempt.attempt_no, attempt.reason) for attempt in attempts] == [(1, "first life"), (1, None)]


async def test_attempts_of_an_earlier_task_of_that_id_are_not_shown(store: Store) -> None:
    await store.bury("a", reason="first")
    await store.lease("a", at(1))
    assert [attempt.started_at for attempt in await store.attempts("a", at(2))] == [at(1)]


async def test_attempts_of_another_tenant_are_not_shown(store: Store, other_store: Store) -> None:
    settled(await store.nack(await store.lease("a"), delay_seconds=0))
    await other_store.enqueue("a")
    assert await other_store.attempts("a") == []


async def test_unknown_task_has_no_attempts(store: Store) -> None:
    with pytest.raises(TaskNotFound):
        await store.attempts("unknown")


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
async def test_pages_show_every_attempt_once(store: Store, limit: int) -> None:
    await store.enqueue("a", max_attempts=0)
    for number in range(3):
        settled(await store.nack(await store.reserve_one(at(number)), at(number), delay_seconds=0))
    await store.reserve_one(at(10))
    seen: list[Attempt] = []
    after: AttemptKey | None = None
    while True:
        page = await store.list_attempts("a", limit=limit, after=after, now=at(11))
        assert len(page.items) <= limit
        seen += page.items
        after = page.next_key
        if after is None:
            break
    assert [attempt.attempt_no for attempt in seen] == [1, 2, 3, 4]
    assert [attempt.finished_at is None for attempt in seen] == [False, False, False, True]


class TestChosenLog:
    """The log may be limited to failures, or off; nothing else depends on it."""

    @pytest.fixture
    async def chosen(
        self, repository: Repository, shared_url: str, request: pytest.FixtureRequest
    ) -> AsyncIterator[tuple[Repository, list[int]]]:
        lost: list[int] = []
        chosen = open_repository(
            connect_dialect(shared_url),
            timeout_seconds=TIMEOUT_SECONDS,
            attempt_log=request.param,
            on_attempts_lost=lost.append,
        )
        yield chosen, lost
        await chosen.close()

    @staticmethod
    async def log_of_one_failure_and_one_success(store: Store) -> list[str | None]:
        settled(await store.nack(await store.lease("a"), at(1), error="timeout", delay_seconds=0))
        settled(await store.ack(await store.reserve_one(at(2)), at(3)))
        return [attempt.reason for attempt in await store.attempts("a", at(4))]

    @pytest.mark.parametrize("chosen", [AttemptLog.ALL], indirect=True)
    async def test_all(self, chosen: tuple[Repository, list[int]], tenant: str) -> None:
        repository, lost = chosen
        assert await self.log_of_one_failure_and_one_success(Store(repository, tenant)) == ["timeout", None]
        assert lost == []

    @pytest.mark.parametrize("chosen", [AttemptLog.FAILURES], indirect=True)
    async def test_failures(self, chosen: tuple[Repository, list[int]], tenant: str) -> None:
        repository, lost = chosen
        assert await self.log_of_one_failure_and_one_success(Store(repository, tenant)) == ["timeout"]
        assert lost == []

    @pytest.mark.parametrize("chosen", [AttemptLog.OFF], indirect=True)
    async def test_off(self, chosen: tuple[Repository, list[int]], tenant: str) -> None:
        repository, lost = chosen
        store = Store(repository, tenant)
        assert await self.log_of_one_failure_and_one_success(store) == []
        await store.lease("b", at(5))
        assert [attempt.finished_at for attempt in await store.attempts("b", at(6))] == [None]
        assert lost == []
