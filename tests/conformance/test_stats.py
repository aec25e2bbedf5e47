"""How many tasks a queue holds in each state."""

import pytest

from app.domain.task import Status
from tests.conformance.steps import QUEUE, Store, at, new_task, settled
from tests.conformance.topology_steps import Topology


async def test_every_state(store: Store, topology: Topology) -> None:
    await store.finish()
    await store.bury()
    await store.bury()
    cancelled = await store.enqueue()
    await store.cancel(cancelled.id)
    await store.enqueue(ttl_seconds=5)
    await store.lease(priority=99)
    await store.lease(priority=99)
    await store.lease(priority=99)
    await store.enqueue(delay_seconds=60)
    await store.enqueue()
    assert await topology.counts(now=at(5)) == {
        "done": 1,
        "dead": 2,
        "cancelled": 1,
        "expired": 1,
        "leased": 3,
        "scheduled": 1,
        "ready": 1,
    }
    assert (await topology.stats(now=at(5))).exact


async def test_every_state_is_told_of(topology: Topology) -> None:
    stats = await topology.stats("never")
    assert stats.counts == dict.fromkeys(Status, 0)
    assert (stats.ready_by_priority, stats.oldest_ready_seconds, stats.next_available_at) == ({}, None, None)
    assert stats.exact


async def test_ready_by_priority(store: Store, topology: Topology) -> None:
    for priority in (20, 20, -5, 2**31 - 1):
        await store.enqueue(priority=priority)
    await store.enqueue(priority=77, delay_seconds=5)
    assert (await topology.stats()).ready_by_priority == {20: 2, -5: 1, 2**31 - 1: 1}


async def test_age_of_the_oldest_ready_counts_from_when_it_became_due(store: Store, topology: Topology) -> None:
    await store.enqueue("later", delay_seconds=10)
    assert (await topology.stats()).oldest_ready_seconds is None
    assert (await topology.stats(now=at(25))).oldest_ready_seconds == pytest.approx(15)
    await store.enqueue("young", at(25), priority=99)
    assert (await topology.stats(now=at(30))).oldest_ready_seconds == pytest.approx(20)


async def test_next_available_at(store: Store, topology: Topology) -> None:
    await store.enqueue(delay_seconds=60)
    assert (await topology.stats()).next_available_at == at(60)
    await store.enqueue(delay_seconds=40)
    assert (await topology.stats()).next_available_at == at(40)
    await store.lease()
    assert (await topology.stats()).next_available_at == at(30)


async def test_what_time_has_changed_is_counted_as_it_is(store: Store, topology: Topology) -> None:
    """Whether or not anybody has moved it."""
    await store.lease("lost")
    await store.lease("exhausted", max_attempts=1)
    await store.enqueue("due", delay_seconds=10)
    await store.enqueue("expired", ttl_seconds=20)
    assert await topology.counts(now=at(30)) == {"ready": 2, "dead": 1, "expired": 1}


async def test_what_a_call_changed_the_next_one_sees(store: Store, topology: Topology) -> None:
    assert await topology.counts() == {}
    await store.enqueue()
    assert await topology.counts() == {"ready": 1}
    leased = await store.reserve_one()
    assert await topology.counts() == {"leased": 1}
    settled(await store.nack(leased, delay_seconds=10))
    assert await topology.counts() == {"scheduled": 1}
    leased = await store.reserve_one(at(10))
    settled(await store.ack(leased, at(10)))
    assert await topology.counts(now=at(10)) == {"done": 1}


async def test_tombstones_are_not_counted(store: Store, topology: Topology) -> None:
    await store.finish(dedupe_key="key", dedupe_seconds=3600)
    assert await topology.counts() == {"done": 1}


async def test_other_queues_and_tenants_are_not_counted(store: Store, topology: Topology, other_store: Store) -> None:
    await store.enqueue(queue="other")
    await store.finish(queue="Work")
    await other_store.finish()
    await other_store.enqueue()
    assert await topology.counts() == {}


async def test_beyond_the_bound(store: Store, topology: Topology) -> None:
    await store.enqueue_many(*(new_task() for _ in range(6)))
    stats = await topology.stats(bound=5)
    assert (stats.counts[Status.READY], stats.exact) == (5, False)
    stats = await topology.stats(bound=7)
    assert (stats.counts[Status.READY], stats.exact) == (6, True)


async def test_without_a_bound(store: Store, topology: Topology) -> None:
    await store.enqueue_many(*(new_task(priority=number % 2) for number in range(6)))
    await store.enqueue(delay_seconds=60)
    await store.finish(priority=99)
    bounded, full = await topology.stats(), await topology.stats(bound=None)
    assert full == bounded
    assert (full.ready_by_priority, full.exact) == ({0: 3, 1: 3}, True)


async def test_priorities_of_more_than_the_bound_are_not_told(store: Store, topology: Topology) -> None:
    await store.enqueue_many(*(new_task(priority=number) for number in range(6)))
    assert (await topology.stats(bound=5)).ready_by_priority == {}


async def test_history_beyond_the_bound(store: Store, topology: Topology) -> None:
    for _ in range(3):
        await store.finish()
    assert not (await topology.stats(bound=3)).exact
    assert (await topology.stats(bound=4)).exact


async def test_queue_that_ended_and_its_next_life(store: Store, topology: Topology) -> None:
    await topology.put(exclusive=True, keep_alive_seconds=60)
    await store.enqueue()
    await store.finish(priority=99)
    assert await topology.counts(QUEUE, at(60)) == {"done": 1}
    await store.enqueue(now=at(61))
    assert await topology.counts(QUEUE, at(61)) == {"ready": 1, "done": 1}
