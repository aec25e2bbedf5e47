"""Limits of queues: how many leases run at once, and how many deliveries there are in a time."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from sqlalchemy import event

from app.domain.commands import Extended
from app.domain.task import ReservedTask
from app.repository.dialect import Dialect
from tests.conformance.steps import QUEUE, T0, VERBS, Store, Verb, at, new_task, settled
from tests.conformance.topology_steps import Topology

# A rounding of the clock to microseconds may not be taken for a delivery too many.
SLACK = 1e-6
RATES = (0.5, 1.0, 2.5, 10.0)


async def fill(store: Store, count: int, queue: str = QUEUE, **fields: str) -> None:
    await store.enqueue_many(*(new_task(queue=queue, type=fields.get("type", "")) for _ in range(count)))


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


def simulated_instants(seed: int) -> Iterator[datetime]:
    """Instants in order, some close together, some far apart."""
    instant, chance = T0, random.Random(seed)
    while True:
        instant += timedelta(seconds=round(chance.choice((0.0, 0.01, 0.1, 0.5, 1.0, 3.0)) * chance.random(), 6))
        yield instant


def most_in_any_window(deliveries: list[datetime], rate: float) -> float:
    """By how many deliveries the worst window is over what the rate allows; not over if at most zero."""
    over = float("-inf")
    for first, start in enumerate(deliveries):
        for last in range(first, len(deliveries)):
            seconds = (deliveries[last] - start).total_seconds()
            over = max(over, last - first + 1 - (rate * seconds + max(1.0, rate)))
    return over


class TestRate:
    """With `rate_per_second` r the deliveries in any t seconds are at most r·t + max(1, r)."""

    @pytest.mark.parametrize("rate", RATES)
    @pytest.mark.parametrize("limit", [1, 7])
    async def test_no_window_has_more_than_the_rate_allows(
        self, store: Store, topology: Topology, rate: float, limit: int
    ) -> None:
        await topology.put(rate_per_second=rate)
        await fill(store, 300)
        instants = simulated_instants(seed=int(rate * 10) + limit)
        deliveries: list[datetime] = []
        while len(deliveries) < 25:
            now = next(instants)
            deliveries += [now] * len(await store.reserve_ids(now, limit=limit))
        assert most_in_any_window(deliveries, rate) <= SLACK

    @pytest.mark.parametrize("rate", RATES)
    async def test_rate_is_reached_when_there_is_enough_to_do(
        self, store: Store, topology: Topology, rate: float
    ) -> None:
        await topology.put(rate_per_second=rate)
        await fill(store, 200)
        total = 0
        for step in range(41):
            total += len(await store.reserve_ids(at(step * 0.25)))
        assert total >= int(rate * 10)

    async def test_burst_is_a_seconds_worth(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=10)
        await fill(store, 100)
        assert len(await store.reserve_ids(at(3600))) == 10
        assert await store.reserve_ids(at(3600)) == []

    async def test_slow_rate_still_delivers_one(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=0.01)
        await fill(store, 5)
        assert len(await store.reserve_ids()) == 1
        assert await store.reserve_ids(at(99)) == []
        assert len(await store.reserve_ids(at(101))) == 1

    async def test_released_deliveries_count(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=1)
        await fill(store, 5)
        settled(await store.release(await store.reserve_one()))
        assert await store.reserve_ids() == []

    async def test_lost_leases_and_their_second_delivery_count(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=0.1)
        await fill(store, 1)
        await store.reserve_one(lease_seconds=1)
        assert await store.reserve_ids(at(2)) == []
        assert len(await store.reserve_ids(at(10))) == 1

    async def test_empty_reserves_use_nothing_up(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=1)
        for step in range(5):
            assert await store.reserve_ids(at(step * 0.1)) == []
        await store.enqueue(now=at(0.5))
        assert len(await store.reserve_ids(at(0.5))) == 1

    async def test_rate_is_the_queues_not_each_types(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=3)
        for kind in ("mail", "sms", ""):
            await fill(store, 5, type=kind)
        assert len(await store.reserve_ids(types=["mail", "sms", ""])) == 3

    async def test_each_of_several_queues_has_its_own_rate(self, store: Store, topology: Topology) -> None:
        await topology.put("slow", rate_per_second=1)
        await topology.put("fast", rate_per_second=4)
        for queue in ("slow", "fast", "free"):
            await fill(store, 6, queue)
        leased = (await store.reserve(queues=["slow", "fast", "free"], limit=100)).tasks
        taken = [task.task.queue for task in leased]
        assert {queue: taken.count(queue) for queue in ("slow", "fast", "free")} == {"slow": 1, "fast": 4, "free": 6}
        assert await store.reserve_ids(queues=["slow", "fast", "free"]) == []

    @pytest.mark.parametrize("rate", [*RATES, 0.3, 3.0, 7.0, 1 / 3, 999.0, 0.001])
    async def test_next_available_at_is_when_the_rate_allows_again(
        self, store: Store, topology: Topology, rate: float
    ) -> None:
        await topology.put(rate_per_second=rate)
        await fill(store, 1010 if rate > 900 else 20)
        now = T0
        await store.reserve(now, limit=1000, lease_seconds=43200)
        for _ in range(5):
            reply = await store.reserve(now, lease_seconds=43200)
            assert not reply.tasks
            assert reply.next_available_at is not None
            assert now < reply.next_available_at <= now + timedelta(seconds=1 / rate + 0.001)
            now = reply.next_available_at
            assert len(await store.reserve_ids(now, limit=1, lease_seconds=43200)) == 1

    async def test_next_available_at_says_nothing_of_the_rate_of_an_empty_queue(
        self, store: Store, topology: Topology
    ) -> None:
        await topology.put(rate_per_second=1)
        settled(await store.ack(await store.lease()))
        assert (await store.reserve()).next_available_at is None

    async def test_next_available_at_is_the_earliest_of_several_queues(self, store: Store, topology: Topology) -> None:
        await topology.put("slow", rate_per_second=0.1)
        await fill(store, 2, "slow")
        await store.enqueue(queue="later", delay_seconds=3)
        queues = ["slow", "later"]
        assert len(await store.reserve_ids(queues=queues)) == 1
        assert (await store.reserve(queues=queues)).next_available_at == at(3)

    async def test_higher_rate_grants_no_more_than_its_own_burst(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=1)
        await fill(store, 100)
        assert len(await store.reserve_ids()) == 1
        await topology.patch(rate_per_second=10)
        assert await store.reserve_ids() == []
        assert len(await store.reserve_ids(at(0.1))) == 1

    async def test_lower_rate_takes_the_burst_away(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=10)
        await fill(store, 100)
        await topology.patch(rate_per_second=2)
        assert len(await store.reserve_ids()) == 2

    @pytest.mark.parametrize("times", [1, 5])
    async def test_setting_the_same_rate_again_grants_nothing(
        self, store: Store, topology: Topology, times: int
    ) -> None:
        await topology.put(rate_per_second=5)
        await fill(store, 100)
        assert len(await store.reserve_ids()) == 5
        for _ in range(times):
            await topology.put(rate_per_second=5)
            await topology.patch(rate_per_second=5)
            await topology.pause()
            await topology.resume()
        assert await store.reserve_ids() == []

    async def test_switching_between_rates_grants_nothing(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=5)
        await fill(store, 100)
        deliveries = [T0] * len(await store.reserve_ids())
        for step in range(1, 20):
            now = at(step * 0.1)
            await topology.patch(now=now, rate_per_second=1 if step % 2 else 5)
            deliveries += [now] * len(await store.reserve_ids(now))
        assert most_in_any_window(deliveries, 5) <= SLACK

    async def test_new_rate_on_a_queue_without_one_holds_from_then_on(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await fill(store, 100)
        assert len(await store.reserve_ids(limit=20)) == 20
        await topology.patch(now=at(5), rate_per_second=3)
        assert len(await store.reserve_ids(at(5))) <= 3
        assert len(await store.reserve_ids(at(5.5))) <= 1


class TestBothLimits:
    async def test_the_tighter_one_decides(self, store: Store, topology: Topology) -> None:
        await topology.put(rate_per_second=5, concurrency_limit=2)
        await fill(store, 20)
        running: list[ReservedTask] = list((await store.reserve(limit=20)).tasks)
        assert len(running) == 2
        for leased in running:
            settled(await store.ack(leased))
        running = list((await store.reserve(limit=20)).tasks)
        assert len(running) == 2
        for leased in running:
            settled(await store.ack(leased))
        assert len((await store.reserve(limit=20)).tasks) == 1

    async def test_what_concurrency_holds_back_is_not_taken_out_of_the_rate(
        self, store: Store, topology: Topology
    ) -> None:
        await topology.put(rate_per_second=2, concurrency_limit=1)
        await fill(store, 5)
        leased = await store.reserve_one()
        for _ in range(5):
            assert await store.reserve_ids() == []
        settled(await store.ack(leased))
        assert len(await store.reserve_ids()) == 1

    async def test_next_available_at_is_not_now_while_concurrency_holds_back(
        self, store: Store, topology: Topology
    ) -> None:
        await topology.put(rate_per_second=5, concurrency_limit=1)
        await fill(store, 5)
        await store.reserve_one(lease_seconds=30)
        assert (await store.reserve(at(1))).next_available_at == at(30)


@contextmanager
def counted_statements(dialect: Dialect) -> Iterator[list[str]]:
    """What is sent to the database meanwhile."""
    sent: list[str] = []

    def note(*arguments: object) -> None:
        sent.append(str(arguments[2]))

    event.listen(dialect.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(dialect.engine.sync_engine, "before_cursor_execute", note)


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
        # The lock, the clock, the count and the bucket.
        assert len(limited) == len(unlimited) + 4

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
