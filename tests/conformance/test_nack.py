"""Nack: the attempt failed; another comes after a delay, unless none is left or nobody wants it any more."""

from datetime import datetime

import pytest

from app.domain.backoff import BackoffOverride
from app.domain.task import Status
from tests.conformance.steps import QUEUE, T0, Store, at, next_try, settled


async def test_delay_is_kept(store: Store) -> None:
    leased = await store.lease("a")
    outcome = settled(await store.nack(leased, at(1), delay_seconds=2.5))
    assert (outcome.id, outcome.queue, outcome.status) == ("a", QUEUE, Status.SCHEDULED)
    assert (outcome.attempts, outcome.available_at) == (1, at(3.5))
    assert await store.reserve_ids(at(3.499999)) == []
    assert (await store.reserve_one(at(3.5))).task.attempts == 2


async def test_no_delay_is_ready_at_once(store: Store) -> None:
    outcome = settled(await store.nack(await store.lease("a"), at(1), delay_seconds=0))
    assert (outcome.status, outcome.available_at) == (Status.READY, at(1))
    assert await store.reserve_ids(at(1)) == ["a"]


@pytest.mark.parametrize(
    ("retry_at", "status"), [(at(60), Status.SCHEDULED), (at(1), Status.READY), (at(-60), Status.READY)]
)
async def test_retry_at_is_kept(store: Store, retry_at: datetime, status: Status) -> None:
    outcome = settled(await store.nack(await store.lease("a"), at(1), retry_at=retry_at))
    assert (outcome.status, outcome.available_at) == (status, retry_at)
    assert (await store.get("a", at(1))).available_at == retry_at


async def test_nacked_task_tells_of_its_failure(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), at(1), error="timeout", delay_seconds=60))
    task = await store.get("a", at(2))
    assert (task.status, task.lease_owner, task.lease_until) == (Status.SCHEDULED, None, None)
    assert (task.last_error, task.last_error_at, task.updated_at) == ("timeout", at(1), at(1))


async def test_nack_without_an_error_keeps_the_last_one(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), at(1), error="timeout", delay_seconds=0))
    settled(await store.nack(await store.reserve_one(at(2)), at(3)))
    task = await store.get("a", at(3))
    assert (task.last_error, task.last_error_at) == ("timeout", at(1))


async def test_backoff_grows_with_the_attempts_up_to_its_maximum(store: Store) -> None:
    backoff = BackoffOverride(base_seconds=10, factor=3, max_seconds=100, jitter=0)
    await store.enqueue("a", max_attempts=0)
    for number, delay in enumerate([10, 30, 90, 100, 100]):
        now = at(1000 * number)
        outcome = settled(await store.nack(await store.reserve_one(now), now, backoff=backoff))
        assert outcome.available_at == at(1000 * number + delay)


async def test_jitter_spreads_the_delay_on_both_sides(store: Store) -> None:
    backoff = BackoffOverride(base_seconds=100, factor=2, max_seconds=100, jitter=0.2)
    await store.enqueue("a", max_attempts=0)
    delays = []
    for number in range(20):
        now = at(1000 * number)
        again_at = next_try(await store.nack(await store.reserve_one(now), now, backoff=backoff))
        delays.append((again_at - now).total_seconds())
    assert all(80 <= delay <= 120 for delay in delays)
    assert min(delays) < 100 < max(delays)


async def test_very_many_attempts_wait_for_the_maximum(store: Store) -> None:
    await store.enqueue("a", max_attempts=0)
    backoff = BackoffOverride(base_seconds=1, factor=1e300, max_seconds=60, jitter=0)
    for number in range(4):
        now = at(1000 * number)
        outcome = settled(await store.nack(await store.reserve_one(now), now, backoff=backoff))
    assert outcome.available_at == at(3060)


async def test_used_up_attempts_make_a_dead_task(store: Store) -> None:
    await store.enqueue("a", max_attempts=2)
    settled(await store.nack(await store.reserve_one(), error="first", delay_seconds=0))
    outcome = settled(await store.nack(await store.reserve_one(at(1)), at(2), error="second", delay_seconds=60))
    assert (outcome.status, outcome.attempts) == (Status.DEAD, 2)
    letter = await store.dead_letter("a", at(2))
    assert (letter.reason, letter.failed_at, letter.task.last_error) == ("second", at(2), "second")


async def test_dead_task_has_a_reason_though_none_was_given(store: Store) -> None:
    settled(await store.nack(await store.lease("a", max_attempts=1)))
    assert (await store.dead_letter("a")).reason == "attempts used up"


async def test_deadline_that_passed_during_the_lease_ends_the_task(store: Store) -> None:
    leased = await store.lease("a", ttl_seconds=10)
    outcome = settled(await store.nack(leased, at(20), error="late", delay_seconds=60))
    assert outcome.status is Status.EXPIRED
    task = await store.get("a", at(20))
    assert (task.status, task.finished_at, task.last_error) == (Status.EXPIRED, at(20), "late")


async def test_used_up_attempts_are_dead_though_the_deadline_passed_too(store: Store) -> None:
    leased = await store.lease("a", ttl_seconds=10, max_attempts=1)
    assert settled(await store.nack(leased, at(20))).status is Status.DEAD


async def test_nack_keeps_what_the_task_is(store: Store) -> None:
    leased = await store.lease("a", priority=3, type="mail", meta='{"a":1}')
    settled(await store.nack(leased, at(1), delay_seconds=0))
    task = await store.get("a", at(1))
    assert (task.priority, task.type, task.meta) == (3, "mail", '{"a":1}')
    assert (task.payload, task.created_at, task.first_leased_at) == (leased.task.payload, T0, T0)
