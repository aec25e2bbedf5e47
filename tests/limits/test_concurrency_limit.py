"""`concurrency_limit`: never more leases at once than it allows, however many ask, crash and die."""

import asyncio
import random
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.limits.fleet import Fleet, Json

QUEUE = "narrow"
LIMIT = 3
TASKS = 90
CALLERS = 12
LEASE_SECONDS = 0.6
PATIENCE_SECONDS = 120.0


@dataclass
class Held:
    """A lease while its caller knew that it had it: from the reply until it asked to settle, or the lease's end.

    The true lease began before and ended after, so that what overlaps here overlapped indeed.
    """

    since: datetime
    until: datetime


class Ledger:
    """What callers held; the databases' clock is the host's."""

    def __init__(self) -> None:
        self._held: list[Held] = []

    def received(self, task: Json) -> Held:
        held = Held(datetime.now(UTC), datetime.fromisoformat(task["lease_until"]))
        self._held.append(held)
        return held

    def most_at_once(self) -> int:
        changes = sorted((at, step) for held in self._held for at, step in ((held.since, 1), (held.until, -1)))
        most = running = 0
        for _, step in changes:
            running += step
            most = max(most, running)
        return most


class Callers:
    """Competing workers, a part of whose work is lost."""

    def __init__(self, fleet: Fleet, ledger: Ledger, queues: list[str]) -> None:
        self._fleet = fleet
        self._ledger = ledger
        self._queues = queues
        self.done: set[str] = set()
        self.crashes = 0

    async def work(self, until_done: int) -> None:
        while len(self.done) < until_done:
            reply = await self._fleet.post(
                "/v1/reserve",
                {
                    "queues": self._queues,
                    "limit": random.randint(1, LIMIT + 1),
                    "lease_seconds": LEASE_SECONDS,
                    "wait_seconds": random.choice([0, 0.3]),
                },
            )
            assert reply["status_code"] == 200, reply
            await asyncio.gather(*(self._handle(task) for task in reply["tasks"]))
            await asyncio.sleep(0.01)

    async def _handle(self, task: Json) -> None:
        held = self._ledger.received(task) if task["queue"] == QUEUE else None
        if random.random() < 0.15:
            # The worker crashed: nobody settles, and the lease runs out.
            self.crashes += 1
            return
        await asyncio.sleep(random.uniform(0, 0.05))
        verb = random.choices(["ack", "nack", "release", "extend"], [8, 1, 1, 1])[0]
        if held is not None and verb != "extend":
            held.until = min(held.until, datetime.now(UTC))
        more: dict[str, Json] = {"nack": {"delay_seconds": 0}, "extend": {"lease_seconds": LEASE_SECONDS}}
        reply = await self._fleet.settle(verb, task, **more.get(verb, {}))
        if verb == "ack" and reply["status_code"] == 200:
            self.done.add(task["id"])


async def compete(fleet: Fleet, ledger: Ledger, queues: list[str], tasks: int) -> Callers:
    """Has everything done, by callers one of whose replicas is killed in between."""
    callers = Callers(fleet, ledger, queues)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(callers.work(tasks))
        group.create_task(kill_in_between(fleet, callers, tasks // 3))
    return callers


async def kill_in_between(fleet: Fleet, callers: Callers, after: int) -> None:
    while True:
        if len(callers.done) >= after:
            fleet.kill(1)
            return
        await asyncio.sleep(0.01)


async def fill(fleet: Fleet, queue: str, count: int) -> None:
    task = {"queue": queue, "payload": None, "max_attempts": 0}
    assert (await fleet.post("/v1/tasks/batch", {"tasks": [task] * count}))["status_code"] == 200


async def test_never_more_leases_than_allowed(fleet: Fleet) -> None:
    ledger = Ledger()
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"concurrency_limit": LIMIT})
    await fill(fleet, QUEUE, TASKS)
    callers = await compete(fleet, ledger, [QUEUE], TASKS)
    assert callers.crashes > 0
    assert ledger.most_at_once() == LIMIT
    stats = await fleet.stats(QUEUE)
    assert (stats["done"], stats["ready"], stats["leased"], stats["dead"]) == (TASKS, 0, 0, 0)


async def test_among_queues_only_the_limited_one_is_held_back(fleet: Fleet) -> None:
    ledger = Ledger()
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"concurrency_limit": LIMIT})
    await fill(fleet, QUEUE, TASKS // 2)
    await fill(fleet, "wide", TASKS // 2)
    await compete(fleet, ledger, [QUEUE, "wide"], TASKS)
    assert ledger.most_at_once() <= LIMIT
    assert [(await fleet.stats(queue))["done"] for queue in (QUEUE, "wide")] == [TASKS // 2] * 2


async def test_a_limit_that_is_lowered_holds_at_once(fleet: Fleet) -> None:
    """What runs goes on; nothing more is given out until there is room."""
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"concurrency_limit": 5})
    await fill(fleet, QUEUE, 20)
    first = await fleet.post("/v1/reserve", {"queues": [QUEUE], "limit": 20, "lease_seconds": 60})
    assert len(first["tasks"]) == 5
    await fleet.call("PATCH", f"/v1/queues/{QUEUE}", {"concurrency_limit": 2})
    for task in first["tasks"][:3]:
        await fleet.settle("ack", task)
        assert (await fleet.post("/v1/reserve", {"queues": [QUEUE], "limit": 20}))["tasks"] == []
    await fleet.settle("ack", first["tasks"][3])
    again = await fleet.post("/v1/reserve", {"queues": [QUEUE], "limit": 20, "lease_seconds": 60})
    assert len(again["tasks"]) == 1


async def test_a_burst_of_reserves_at_once_stays_within_the_limit(fleet: Fleet) -> None:
    for round_ in range(10):
        queue = f"burst-{round_}"
        await fleet.call("PUT", f"/v1/queues/{queue}", {"concurrency_limit": LIMIT})
        await fill(fleet, queue, 20)
        body = {"queues": [queue], "limit": 2, "lease_seconds": 60}
        replies = await asyncio.gather(*(fleet.post("/v1/reserve", body) for _ in range(20)))
        assert sum(len(reply["tasks"]) for reply in replies) == LIMIT


async def test_a_reply_that_is_held_back_by_concurrency_names_no_moment_that_is_now(fleet: Fleet) -> None:
    await fleet.call("PUT", f"/v1/queues/{QUEUE}", {"concurrency_limit": 1, "rate_per_second": 1000})
    await fill(fleet, QUEUE, 2)
    [leased] = (await fleet.post("/v1/reserve", {"queues": [QUEUE], "lease_seconds": 60}))["tasks"]
    reply = await fleet.post("/v1/reserve", {"queues": [QUEUE]})
    assert reply["tasks"] == []
    assert reply["next_available_at"] in (None, leased["lease_until"])
