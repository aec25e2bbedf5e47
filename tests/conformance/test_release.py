"""Release: the delivery did not count."""

from app.domain.task import Status
from tests.conformance.steps import QUEUE, T0, Store, at, settled


async def test_released_task_is_ready_at_once(store: Store) -> None:
    outcome = settled(await store.release(await store.lease("a"), at(1)))
    assert (outcome.id, outcome.queue, outcome.status) == ("a", QUEUE, Status.READY)
    assert (outcome.attempts, outcome.available_at) == (0, T0)
    assert await store.reserve_ids(at(1)) == ["a"]


async def test_attempt_is_taken_back(store: Store) -> None:
    await store.enqueue("a", max_attempts=1)
    for number in range(3):
        settled(await store.release(await store.reserve_one(at(number)), at(number)))
    assert (await store.get("a", at(3))).attempts == 0
    assert (await store.reserve_one(at(4))).task.attempts == 1


async def test_attempts_before_it_stay_counted(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), delay_seconds=0))
    settled(await store.release(await store.reserve_one(at(1)), at(1)))
    assert (await store.get("a", at(1))).attempts == 1


async def test_released_task_keeps_its_place(store: Store) -> None:
    leased = await store.lease("first")
    await store.enqueue("second")
    settled(await store.release(leased, at(10)))
    task = await store.get("first", at(10))
    assert (task.available_at, task.lease_owner, task.lease_until) == (T0, None, None)
    assert await store.reserve_ids(at(10)) == ["first", "second"]


async def test_release_leaves_no_error(store: Store) -> None:
    settled(await store.release(await store.lease("a"), at(1)))
    task = await store.get("a", at(1))
    assert (task.last_error, task.last_error_at) == (None, None)


async def test_release_is_not_logged_as_an_attempt(store: Store) -> None:
    settled(await store.release(await store.lease("a"), at(1)))
    assert await store.attempts("a", at(1)) == []


async def test_released_task_whose_deadline_passed_is_expired(store: Store) -> None:
    leased = await store.lease("a", ttl_seconds=10)
    assert settled(await store.release(leased, at(20))).status is Status.EXPIRED
    assert await store.status("a", at(20)) is Status.EXPIRED
