"""Limits of queues on how many leases run at once; and that who has no limit pays for none."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.domain.commands import Extended
from app.repository.dialect import Dialect
from tests.conformance.steps import VERBS, Store, Verb, at, new_task, settled
from tests.conformance.topology_steps import Topology, fill
from tests.statements import watched


class TestConcurrency:
    """`concurrency_limit` never lets more leases run at once."""

    async def test_one_reserve_gets_no_more_than_the_limit(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=3)
        await fill(store, 10)
        assert len(await store.reserve_ids(limit=10)) == 3
        assert await store.reserve_ids(limit=10) == []

    async def test_reserves_one_by_one_get_no_more_than_the_limit(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=2)
        await fill(store, 5)
        assert [len(await store.reserve_ids(limit=1)) for _ in range(4)] == [1, 1, 0, 0]

    async def test_room_that_is_left_is_used(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=3)
        await fill(store, 10)
        await store.reserve_one()
        assert len(await store.reserve_ids(limit=10)) == 2

    async def test_most_urgent_ones_run(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=2)
        await store.enqueue_many(*(new_task(f"p{priority}", priority=priority) for priority in (1, 3, 2)))
        assert await store.reserve_ids() == ["p3", "p2"]

    async def test_each_of_several_queues_has_its_own_limit(self, store: Store, topology: Topology) -> None:
        await topology.put("one", concurrency_limit=1)
        await topology.put("two", concurrency_limit=2)
        for queue in ("one", "two", "free"):
            await fill(store, 5, queue)
        leased = (await store.reserve(queues=["one", "two", "free"], limit=100)).tasks
        taken = [task.task.queue for task in leased]
        assert {queue: taken.count(queue) for queue in ("one", "two", "free")} == {"one": 1, "two": 2, "free": 5}

    async def test_limited_queue_does_not_keep_others_from_being_served(self, store: Store, topology: Topology) -> None:
        await topology.put("one", concurrency_limit=1)
        await store.enqueue_many(*(new_task(queue="one", priority=99) for _ in range(5)))
        await fill(store, 3, "free")
        assert len(await store.reserve_ids(queues=["one", "free"], limit=3)) == 3

    async def test_limit_is_the_queues_not_each_types(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=3)
        for kind in ("mail", "sms", ""):
            await fill(store, 5, type=kind)
        assert len(await store.reserve_ids(types=["mail", "sms", ""])) == 3
        assert await store.reserve_ids(types=["sms"]) == []

    async def test_types_and_several_queues(self, store: Store, topology: Topology) -> None:
        await topology.put("one", concurrency_limit=2)
        await topology.put("two", concurrency_limit=1)
        for queue in ("one", "two"):
            for kind in ("mail", "sms"):
                await fill(store, 4, queue, type=kind)
        leased = (await store.reserve(queues=["one", "two"], types=["mail", "sms"], limit=100)).tasks
        assert sorted(task.task.queue for task in leased) == ["one", "one", "two"]

    async def test_lease_that_ran_out_frees_its_place(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 2)
        await store.reserve_one(lease_seconds=30)
        assert await store.reserve_ids(at(29.999999)) == []
        assert len(await store.reserve_ids(at(30))) == 1

    @pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "extend"])
    async def test_settling_frees_a_place(self, store: Store, topology: Topology, verb: Verb) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 2)
        leased = await store.reserve_one()
        settled_now = await store.settle(verb, leased, at(1))
        assert settled_now
        assert len(await store.reserve_ids(at(1))) == 1

    async def test_extended_lease_keeps_its_place(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 2)
        leased = await store.reserve_one(lease_seconds=30)
        assert isinstance(await store.extend(leased, at(20), 30), Extended)
        assert await store.reserve_ids(at(40)) == []
        assert len(await store.reserve_ids(at(50))) == 1

    async def test_forced_cancel_frees_a_place(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 2)
        leased = await store.reserve_one()
        await store.cancel(leased.task.id, force=True)
        assert len(await store.reserve_ids()) == 1

    async def test_lower_limit_than_what_runs_waits_until_enough_ended(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=3)
        await fill(store, 10)
        running = list((await store.reserve(limit=3)).tasks)
        await topology.patch(concurrency_limit=1)
        for leased in running[:2]:
            assert await store.reserve_ids() == []
            settled(await store.ack(leased))
        assert await store.reserve_ids() == []
        settled(await store.ack(running[2]))
        assert len(await store.reserve_ids()) == 1

    async def test_higher_limit_and_none_are_seen_at_once(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 10)
        assert len(await store.reserve_ids()) == 1
        await topology.patch(concurrency_limit=3)
        assert len(await store.reserve_ids()) == 2
        await topology.patch(concurrency_limit=None)
        assert len(await store.reserve_ids()) == 7

    async def test_leases_from_before_the_limit_count(self, store: Store, topology: Topology) -> None:
        await fill(store, 5)
        await store.reserve(limit=2)
        await topology.put(concurrency_limit=3)
        assert len(await store.reserve_ids()) == 1

    async def test_tenants_have_limits_of_their_own(self, store: Store, topology: Topology, other_store: Store) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 5)
        await fill(other_store, 5)
        assert len(await other_store.reserve_ids()) == 5
        assert len(await store.reserve_ids()) == 1

    async def test_empty_reply_tells_when_a_lease_ends(self, store: Store, topology: Topology) -> None:
        await topology.put(concurrency_limit=1)
        await fill(store, 2)
        await store.reserve_one(lease_seconds=30)
        assert (await store.reserve(at(1))).next_available_at == at(30)


@contextmanager
def counted_statements(dialect: Dialect) -> Iterator[list[str]]:
    """What is sent to the database meanwhile."""
    sent: list[str] = []
    with watched(dialect, lambda statement, parameters: sent.append(statement)):
        yield sent


# The lock, the count and the bucket.
FOR_LIMITS = {"lock_queues", "count_leased", "set_rate_left"}


class TestCost:
    """Only who asks for a limit pays for it."""

    async def test_unlimited_queue_costs_no_statement_more(
        self, store: Store, topology: Topology, shared_dialect: Dialect
    ) -> None:
        await fill(store, 10)
        with counted_statements(shared_dialect) as undeclared:
            await store.reserve_one()
        await topology.put()
        with counted_statements(shared_dialect) as unlimited:
            await store.reserve_one()
        await topology.put(concurrency_limit=100, rate_per_second=100)
        with counted_statements(shared_dialect) as limited:
            await store.reserve_one()
        assert unlimited == undeclared
        assert not FOR_LIMITS & set(unlimited)
        assert set(limited) >= FOR_LIMITS

    async def test_limit_of_another_queue_costs_nothing(
        self, store: Store, topology: Topology, shared_dialect: Dialect
    ) -> None:
        await fill(store, 10)
        with counted_statements(shared_dialect) as before:
            await store.reserve_one()
        await topology.put("other", concurrency_limit=1)
        with counted_statements(shared_dialect) as after:
            await store.reserve_one()
        assert after == before
