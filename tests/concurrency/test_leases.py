"""Workers at two replicas: no task is ever held by two live leases, and each is done exactly once."""

import asyncio
import random
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

from tests.concurrency.fleet import Fleet, Json
from tests.concurrency.ledger import Delivery, Ledger
from tests.concurrency.tables import Tables

QUEUES = ("a", "b", "c")
TYPES = ("", "x", "y")
TASKS = 480
DILIGENT = 20
CRASHING = 6
LATE = 4
CRASHES = 5
SHORT_LEASE_SECONDS = 0.3
TIMEOUT_SECONDS = 90
TOO_LATE = {"lease_expired", "lease_mismatch", "task_not_leased"}

# What workers ask for: one queue or several, one task or ten, all types or some.
PROFILES: tuple[Json, ...] = (
    {"queues": ["a"], "limit": 1},
    {"queues": ["a", "b", "c"], "limit": 10},
    {"queues": ["b"], "limit": 1, "types": ["x"]},
    {"queues": ["c", "b"], "limit": 10, "types": ["", "y"]},
    {"queues": ["c"], "limit": 10},
    {"queues": ["c", "a", "b"], "limit": 1},
)


@dataclass
class Shift:
    """Workers of all kinds, who work until every task is done."""

    fleet: Fleet
    ledger: Ledger = field(default_factory=Ledger)
    done: list[str] = field(default_factory=list)
    crashed: set[str] = field(default_factory=set)
    told_late: list[str] = field(default_factory=list)

    async def work(self) -> None:
        """Lets all of them work; every third of the diligent ones takes whatever there is, so that nothing is left."""
        workers = [self.diligent(profile) for profile in islice(cycle(PROFILES), DILIGENT)]
        workers += [self.crashing(profile) for profile in islice(cycle(PROFILES), CRASHING)]
        workers += [self.late(profile) for profile in islice(cycle(PROFILES), LATE)]
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.gather(*workers)

    async def diligent(self, profile: Json) -> None:
        """Acks what it gets, one by one or all at once."""
        while len(self.done) < TASKS:
            leases = await self.reserve({**profile, "lease_seconds": 30})
            await asyncio.sleep(random.uniform(0, 0.01) if leases else 0.05)
            if len(leases) > 1:
                await self.ack_many(leases)
            elif leases:
                await self.ack(*leases[0])

    async def crashing(self, profile: Json) -> None:
        """Takes tasks and is never heard of again, a few times."""
        for _ in range(CRASHES):
            leases = await self.reserve({**profile, "lease_seconds": SHORT_LEASE_SECONDS})
            self.crashed |= {task["id"] for task, _ in leases}
            await asyncio.sleep(random.uniform(0, 0.1))

    async def late(self, profile: Json) -> None:
        """Acks what it gets only after its lease has run out."""
        for _ in range(CRASHES):
            leases = await self.reserve({**profile, "limit": 1, "lease_seconds": SHORT_LEASE_SECONDS})
            self.crashed |= {task["id"] for task, _ in leases}
            await asyncio.sleep(SHORT_LEASE_SECONDS + 0.05)
            self.told_late += [(await self.fleet.settle("ack", task)).code for task, _ in leases]

    async def reserve(self, fields: dict[str, Any]) -> list[tuple[Json, Delivery]]:
        reply = await self.fleet.reserve(**fields)
        return list(zip(reply["tasks"], self.ledger.reserved(reply), strict=True))

    async def ack(self, task: Json, delivery: Delivery) -> None:
        delivery.ended = "ack"
        assert (await self.fleet.settle("ack", task)).body == {"id": task["id"], "status": "done"}
        self.done.append(task["id"])

    async def ack_many(self, leases: list[tuple[Json, Delivery]]) -> None:
        for _, delivery in leases:
            delivery.ended = "ack"
        results = await self.fleet.settle_many("ack", [task for task, _ in leases])
        assert [result["ok"] for result in results] == [True] * len(leases)
        self.done += [task["id"] for task, _ in leases]


async def test_no_task_is_held_by_two_live_leases(fleet: Fleet, tables: Tables) -> None:
    ids = await enqueue(fleet)
    shift = Shift(fleet)
    await shift.work()
    assert not fleet.failures
    assert shift.ledger.held_twice == []
    assert sorted(shift.done) == sorted(ids)
    assert set(shift.told_late) <= TOO_LATE
    assert (await fleet.get("/v1/tasks")).body["items"] == []
    for replica in (0, 1):
        finished = (await fleet.get("/v1/tasks?status=done&limit=500", replica)).body["items"]
        assert {task["id"] for task in finished} == set(ids)
    await check_attempts(shift, ids, tables)


async def check_attempts(shift: Shift, ids: list[str], tables: Tables) -> None:
    """Every delivery is in the log once: of each task the last one a success, those before it lost."""
    assert await tables.broken() == []
    history, log = await tables.history("done"), await tables.attempts()
    assert set(history) == set(ids)
    assert shift.crashed
    for task_id in ids:
        deliveries = sorted(shift.ledger.by_task[task_id], key=lambda delivery: delivery.attempt_no)
        assert [delivery.attempt_no for delivery in deliveries] == list(range(1, len(deliveries) + 1))
        assert history[task_id]["attempts"] == len(deliveries)
        assert [row["attempt_no"] for row in log[task_id]] == list(range(1, len(deliveries) + 1))
        assert [bool(row["success"]) for row in log[task_id]] == [d.ended == "ack" for d in deliveries]
    assert all(history[task_id]["attempts"] >= 2 for task_id in shift.crashed)


async def enqueue(fleet: Fleet) -> list[str]:
    """The tasks, spread over queues, types and priorities; they may be tried without end."""
    tasks: list[Json] = [
        {"queue": queue, "type": type_, "priority": random.randrange(3), "max_attempts": 0}
        for queue, type_, _ in zip(cycle(QUEUES), cycle(TYPES[:1] + TYPES + TYPES), range(TASKS), strict=False)
    ]
    results = [await fleet.enqueue_many(tasks[start : start + 100]) for start in range(0, TASKS, 100)]
    return [result["id"] for batch in results for result in batch]
