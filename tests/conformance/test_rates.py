"""Rates of queues: how many deliveries there are in a time, alone and together with a limit on leases."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from app.domain.task import ReservedTask
from tests.conformance.steps import T0, Store, at, settled
from tests.conformance.topology_steps import Topology, fill

# A rounding of the clock to microseconds may not be taken for a delivery too many.
SLACK = 1e-6
RATES = (0.5, 1.0, 2.5, 10.0)


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


@pytest.mark.parametrize("rate", [1e-9, 1e-12, 1e-300])
async def test_rate_that_is_next_to_nothing(store: Store, topology: Topology, rate: float) -> None:
    await topology.put(rate_per_second=rate)
    await fill(store, 2)
    assert len(await store.reserve_ids(limit=1)) == 1
    empty = await store.reserve()
    assert not empty.tasks
    assert empty.next_available_at is not None
    assert empty.next_available_at > at(3600)
