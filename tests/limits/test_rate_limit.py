"""`rate_per_second`: in any t seconds at most r·t + max(1, r) tasks are delivered, by all replicas together."""

import asyncio
import random
from datetime import datetime, timedelta

import pytest

from tests.limits.fleet import Fleet

QUEUE = "slow"
CALLERS = 8
PATIENCE_SECONDS = 120.0
# Instants are told to the microsecond.
ROUNDING = 1e-3


class Deliveries:
    """When tasks were delivered, by the database's clock."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self.ids: set[str] = set()

    def add(self, reply: dict[str, object]) -> None:
        tasks = reply["tasks"]
        assert isinstance(tasks, list)
        at = datetime.fromisoformat(str(reply["server_time"])).timestamp()
        self._at += [at] * len(tasks)
        self.ids |= {task["id"] for task in tasks}

    def excess(self, rate: float) -> float:
        """By how much the fullest window is over what is allowed; not positive if the rate was kept.

        It is enough to look at windows that begin and end with a delivery.
        """
        at = sorted(self._at)
        return max(
            count - (rate * (at[first + count - 1] - at[first]) + max(1.0, rate))
            for first in range(len(at))
            for count in range(1, len(at) - first + 1)
        )


async def take(fleet: Fleet, deliveries: Deliveries, queues: list[str], total: int) -> None:
    while len(deliveries.ids) < total:
        body = {"queues": queues, "limit": random.randint(1, 10), "wait_seconds": random.choice([0, 0.5])}
        reply = await fleet.post("/v1/reserve", {**body, "lease_seconds": 600})
        assert reply["status_code"] == 200, reply
        deliveries.add(reply)
        await asyncio.sleep(0.02)


async def fill(fleet: Fleet, queue: str, count: int) -> None:
    task = {"queue": queue, "payload": None}
    assert (await fleet.post("/v1/tasks/batch", {"tasks": [task] * count}))["status_code"] == 200


async def test_no_window_is_over_the_rate(fleet: Fleet) -> None:
    rate, tasks = 20, 120
    deliveries = Deliveries()
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": rate})
    await fill(fleet, QUEUE, tasks)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(take(fleet, deliveries, [QUEUE], tasks))
    assert deliveries.excess(rate) <= ROUNDING
    # The measure itself can tell: at half the rate this would have been too much.
    assert deliveries.excess(rate / 2) > 0


async def test_a_replica_that_dies_makes_no_room(fleet: Fleet) -> None:
    """Deliveries whose reply was lost count too, so that fewer than all are seen."""
    rate, tasks, seen = 20, 200, 100
    deliveries = Deliveries()
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": rate})
    await fill(fleet, QUEUE, tasks)

    async def kill_in_between() -> None:
        while True:
            if len(deliveries.ids) > seen // 3:
                fleet.kill(1)
                return
            await asyncio.sleep(0.01)

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(take(fleet, deliveries, [QUEUE], seen))
        group.create_task(kill_in_between())
    assert deliveries.excess(rate) <= ROUNDING


@pytest.mark.parametrize("rate", [0.7, 3])
async def test_low_rates(fleet: Fleet, rate: float) -> None:
    tasks = 4 if rate < 1 else 12
    deliveries = Deliveries()
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": rate})
    await fill(fleet, QUEUE, tasks)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(take(fleet, deliveries, [QUEUE], tasks))
    assert deliveries.excess(rate) <= ROUNDING


async def test_a_rate_that_is_changed_and_put_anew_gives_no_more(fleet: Fleet) -> None:
    rate, tasks = 10, 60
    deliveries = Deliveries()
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": rate})
    await fill(fleet, QUEUE, tasks)

    async def put_again() -> None:
        while len(deliveries.ids) < tasks:
            await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": rate})
            await fleet.post(f"/v1/queues/{QUEUE}/pause", {})
            await fleet.post(f"/v1/queues/{QUEUE}/resume", {})
            await asyncio.sleep(0.1)

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(take(fleet, deliveries, [QUEUE], tasks))
        group.create_task(put_again())
    assert deliveries.excess(rate) <= ROUNDING


async def test_a_released_delivery_counts(fleet: Fleet) -> None:
    rate = 5
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": rate})
    await fill(fleet, QUEUE, 1)
    at: list[float] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(at) < 15:
            reply = await fleet.post("/v1/reserve", {"queues": [QUEUE], "wait_seconds": 1})
            for task in reply["tasks"]:
                at.append(datetime.fromisoformat(reply["server_time"]).timestamp())
                await fleet.settle("release", task)
    assert rate * (at[-1] - at[0]) + rate + ROUNDING >= len(at)


async def test_the_reply_tells_when_the_rate_allows_the_next(fleet: Fleet) -> None:
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"rate_per_second": 0.01})
    await fill(fleet, QUEUE, 2)
    first = await fleet.post("/v1/reserve", {"queues": [QUEUE], "limit": 2, "lease_seconds": 600})
    assert len(first["tasks"]) == 1
    reply = await fleet.post("/v1/reserve", {"queues": [QUEUE]})
    assert reply["tasks"] == []
    allowed, told = (datetime.fromisoformat(text) for text in (first["server_time"], reply["next_available_at"]))
    assert abs(told - allowed - timedelta(seconds=100)) < timedelta(seconds=1)
