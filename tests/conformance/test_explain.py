"""Why a task is not running now: the first thing that stands between it and a worker."""

from itertools import product

import pytest

from app.domain.errors import TaskNotFound
from app.domain.topology import Reason
from tests.conformance.steps import QUEUE, WORKER, Store, at, new_task, settled
from tests.conformance.topology_steps import Topology


async def test_unknown(topology: Topology) -> None:
    with pytest.raises(TaskNotFound):
        await topology.explain("unknown")


async def test_ready(store: Store, topology: Topology) -> None:
    await store.enqueue("first")
    explained = await topology.explain("first")
    assert explained.reason is Reason.READY
    assert explained.detail
    assert await store.reserve_ids(limit=1) == ["first"]


async def test_waiting_behind(store: Store, topology: Topology) -> None:
    await store.enqueue_many(
        new_task("urgent", priority=30), new_task("earlier"), new_task("asked"), new_task("idle", priority=1)
    )
    explained = await topology.explain("asked")
    assert (explained.reason, explained.facts["ahead"]) == (Reason.WAITING_BEHIND, 2)
    await store.reserve(limit=2)
    assert (await topology.explain("asked")).reason is Reason.READY


async def test_those_ahead_are_those_that_are_delivered_before(store: Store, topology: Topology) -> None:
    """By priority, then by the time they were due, then by acceptance."""
    for number, (priority, due) in enumerate(product((20, -5, 30), (at(1), at(0), at(1)))):
        await store.enqueue(f"task-{number}", priority=priority, available_at=due)
    ahead = {f"task-{number}": (await topology.explain(f"task-{number}", at(2))).facts["ahead"] for number in range(9)}
    assert sorted(ahead, key=ahead.__getitem__) == await store.reserve_ids(at(2), limit=9)
    assert sorted(ahead.values()) == list(range(9))


async def test_only_its_own_queue_is_ahead(store: Store, topology: Topology) -> None:
    await store.enqueue("urgent", queue="other", priority=99)
    await store.enqueue("asked")
    assert (await topology.explain("asked")).reason is Reason.READY


async def test_very_many_are_counted_up_to_a_bound(store: Store, topology: Topology) -> None:
    await store.enqueue_many(*(new_task() for _ in range(10)), new_task("asked"))
    explained = await topology.explain("asked", bound=5)
    assert (explained.reason, explained.facts["ahead"]) == (Reason.WAITING_BEHIND, 5)


async def test_scheduled(store: Store, topology: Topology) -> None:
    await store.enqueue("later", delay_seconds=60)
    explained = await topology.explain("later", at(59))
    assert (explained.reason, explained.facts["available_at"]) == (Reason.SCHEDULED, at(60))
    assert (await topology.explain("later", at(60))).reason is Reason.READY


async def test_backoff_is_scheduled(store: Store, topology: Topology) -> None:
    settled(await store.nack(await store.lease("first"), delay_seconds=10))
    assert (await topology.explain("first")).reason is Reason.SCHEDULED


async def test_leased(store: Store, topology: Topology) -> None:
    await store.lease("first")
    explained = await topology.explain("first", at(29))
    assert explained.reason is Reason.LEASED
    assert (explained.facts["lease_until"], explained.facts["lease_owner"]) == (at(30), WORKER)
    assert (await topology.explain("first", at(30))).reason is Reason.READY


async def test_leased_in_a_queue_that_is_gone(store: Store, topology: Topology) -> None:
    await topology.put()
    await store.lease("first")
    await topology.delete()
    assert (await topology.explain("first", at(29))).reason is Reason.LEASED
    assert (await topology.explain("first", at(30))).reason is Reason.FINISHED


async def test_finished(store: Store, topology: Topology) -> None:
    await store.finish("done")
    await store.bury("dead")
    await store.enqueue("cancelled")
    await store.cancel("cancelled")
    await store.enqueue("expired", ttl_seconds=5)
    for task_id in ("done", "dead", "cancelled", "expired"):
        explained = await topology.explain(task_id, at(5))
        assert (explained.reason, explained.facts["status"]) == (Reason.FINISHED, task_id)


async def test_finished_by_time(store: Store, topology: Topology) -> None:
    await store.lease("dead", max_attempts=1)
    assert (await topology.explain("dead", at(30))).facts["status"] == "dead"


async def test_queue_paused(store: Store, topology: Topology) -> None:
    await store.enqueue("first")
    await topology.pause()
    assert (await topology.explain("first")).reason is Reason.QUEUE_PAUSED
    await topology.resume()
    assert (await topology.explain("first")).reason is Reason.READY


async def test_rate_limited(store: Store, topology: Topology) -> None:
    await topology.put(rate_per_second=0.1)
    await store.lease()
    await store.enqueue("first")
    explained = await topology.explain("first")
    assert (explained.reason, explained.facts["next_available_at"]) == (Reason.RATE_LIMITED, at(10))
    assert (await topology.explain("first", at(10))).reason is Reason.READY
    assert await store.reserve_ids(at(10)) == ["first"]


async def test_concurrency_limited(store: Store, topology: Topology) -> None:
    await topology.put(concurrency_limit=2)
    for _ in range(2):
        await store.lease()
    await store.enqueue("first", priority=99)
    explained = await topology.explain("first")
    assert (explained.reason, explained.facts["leased"]) == (Reason.CONCURRENCY_LIMITED, 2)
    assert (await topology.explain("first", at(30))).reason is Reason.READY


async def test_whole_queue_comes_before_the_line(store: Store, topology: Topology) -> None:
    await store.enqueue_many(new_task("earlier"), new_task("asked"))
    await topology.put(paused=True, concurrency_limit=1)
    assert (await topology.explain("asked")).reason is Reason.QUEUE_PAUSED


class TestAsItIsByNow:
    """Others that time has changed count as what they are, whether or not anybody has moved them."""

    async def test_one_that_became_due_is_ahead(self, store: Store, topology: Topology) -> None:
        await store.enqueue("urgent", priority=99, delay_seconds=10)
        await store.enqueue("asked")
        assert (await topology.explain("asked", at(9))).reason is Reason.READY
        assert (await topology.explain("asked", at(10))).reason is Reason.WAITING_BEHIND

    async def test_one_that_came_back_is_ahead(self, store: Store, topology: Topology) -> None:
        await store.lease("urgent", priority=99)
        await store.enqueue("asked")
        assert (await topology.explain("asked", at(30))).reason is Reason.WAITING_BEHIND

    async def test_one_that_expired_is_not(self, store: Store, topology: Topology) -> None:
        await store.enqueue("urgent", priority=99, ttl_seconds=10)
        await store.enqueue("asked")
        assert (await topology.explain("asked", at(9))).reason is Reason.WAITING_BEHIND
        assert (await topology.explain("asked", at(10))).reason is Reason.READY

    async def test_what_waited_in_a_queue_that_ended(self, store: Store, topology: Topology) -> None:
        await topology.put(exclusive=True, keep_alive_seconds=60)
        await store.enqueue("first")
        with pytest.raises(TaskNotFound):
            await topology.explain("first", at(60))


async def test_tenants_are_apart(store: Store, other_topology: Topology) -> None:
    await store.enqueue("first", queue=QUEUE)
    with pytest.raises(TaskNotFound):
        await other_topology.explain("first")
