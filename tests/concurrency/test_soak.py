"""Everything at once through both replicas, and what must be true afterwards."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.concurrency.fleet import Fleet, Json, Reply
from tests.concurrency.ledger import Delivery, Ledger
from tests.concurrency.tables import Tables

SECONDS = 10.0
QUEUES = ("a", "b", "c")
TYPES = ("", "x")
KEYS = [f"key-{number}" for number in range(30)]
LONGEST_LEASE_SECONDS = 1.5
LISTS = (
    "/v1/tasks",
    "/v1/tasks?status=leased",
    "/v1/tasks?status=done&queue=a",
    "/v1/tasks?status=expired",
    "/v1/tasks?status=dead",
    "/v1/dlq?reason_contains=broken",
)
ALLOWED = {200, 201, 404, 409}


@dataclass
class Soak:
    """Callers of every kind; the ids that they have heard of are what the meddlers pick from."""

    fleet: Fleet
    ledger: Ledger = field(default_factory=Ledger)
    ids: list[str] = field(default_factory=lambda: ["nobody"])
    statuses: set[int] = field(default_factory=set)
    unexplained: list[str] = field(default_factory=list)

    async def run(self) -> None:
        steps = [self.produce] * 5 + [self.work] * 12 + [self.edit] * 2 + [self.cancel, self.requeue, self.look] * 2
        deadline = time.monotonic() + SECONDS
        await asyncio.gather(*(self._repeat(step, deadline) for step in steps))

    async def _repeat(self, step: Callable[[], Awaitable[None]], deadline: float) -> None:
        while time.monotonic() < deadline:
            await step()
            await asyncio.sleep(random.uniform(0, 0.02))

    async def produce(self) -> None:
        if random.random() < 0.3:
            results = await self.fleet.enqueue_many([_task() for _ in range(random.randint(2, 20))])
            self.ids += [result["id"] for result in results]
        else:
            reply = self._noted(await self.fleet.post("/v1/tasks", {"payload": {"n": 1}, **_task()}))
            self.ids.append(reply.body["id"])

    async def work(self) -> None:
        reply = await self.fleet.reserve(
            queues=random.sample(QUEUES, random.randint(1, 3)),
            types=random.sample(TYPES, random.randint(0, 2)),
            limit=random.choice((1, 1, 3, 10)),
            lease_seconds=random.uniform(0.2, LONGEST_LEASE_SECONDS),
        )
        for task, delivery in zip(reply["tasks"], self.ledger.reserved(reply), strict=True):
            await self._settle(task, delivery)

    async def _settle(self, task: Json, delivery: Delivery) -> None:
        """Ends the lease in some way, or lets it run out; a lease is also lost to a cancel by force."""
        verb = random.choice(("ack", "ack", "ack", "nack", "release", "fail", "extend", "forget"))
        if verb == "extend":
            self._noted(await self.fleet.settle("extend", task, lease_seconds=LONGEST_LEASE_SECONDS))
        elif verb != "forget":
            bodies: dict[str, Json] = {"nack": {"delay_seconds": random.choice((0, 0.2))}, "fail": {"reason": "broken"}}
            delivery.ended = "settling"
            reply = self._noted(await self.fleet.settle(verb, task, **bodies.get(verb, {})))
            delivery.ended = verb if reply.ok else reply.code

    async def edit(self) -> None:
        change = random.choice(({"priority": random.randrange(5)}, {"max_attempts": random.randint(1, 4)}))
        self._noted(await self.fleet.call("PATCH", f"/v1/tasks/{self._some_id()}", change))

    async def cancel(self) -> None:
        force = random.choice(("true", "false"))
        self._noted(await self.fleet.call("DELETE", f"/v1/tasks/{self._some_id()}?force={force}"))

    async def requeue(self) -> None:
        again = {"reset_attempts": random.random() < 0.5, "delay_seconds": random.choice((0, 0.1))}
        dead = (await self.fleet.get("/v1/dlq?limit=5")).body["items"]
        if dead and random.random() < 0.7:
            self._noted(await self.fleet.post(f"/v1/dlq/{random.choice(dead)['task_id']}/requeue", again))
        else:
            self._noted(
                await self.fleet.post("/v1/dlq/requeue", {"limit": 10, "queue": random.choice(QUEUES), **again})
            )

    async def look(self) -> None:
        task_id = self._some_id()
        for path in (random.choice(LISTS), f"/v1/tasks/{task_id}", f"/v1/tasks/{task_id}/attempts"):
            reply = self._noted(await self.fleet.get(path))
            if reply.status == 404 and task_id != "nobody":
                self.unexplained.append(f"{path}: {reply.body}")

    def _some_id(self) -> str:
        """Mostly a recent one."""
        return random.choice(self.ids[-50:])

    def _noted(self, reply: Reply) -> Reply:
        self.statuses.add(reply.status)
        return reply


def _task() -> Json:
    task: Json = {
        "queue": random.choice(QUEUES),
        "type": random.choice(TYPES),
        "priority": random.randrange(5),
        "max_attempts": random.randint(1, 4),
        "payload": None,
    }
    if random.random() < 0.5:
        task |= {"dedupe_key": random.choice(KEYS), "dedupe_seconds": random.choice((0, 0.1, 0.5))}
    if random.random() < 0.3:
        task |= {"delay_seconds": random.uniform(0, 0.5)}
    if random.random() < 0.3:
        task |= {"ttl_seconds": random.uniform(0.2, 2)}
    return task


async def test_everything_at_once(fleet: Fleet, tables: Tables) -> None:
    soak = Soak(fleet)
    await soak.run()
    await asyncio.sleep(LONGEST_LEASE_SECONDS)
    # Takes back the leases that ran out.
    assert (await fleet.get("/v1/tasks?status=dead")).ok
    assert not fleet.failures
    assert soak.statuses <= ALLOWED
    # No task is ever thrown away here, so whoever asks for one finds it.
    assert soak.unexplained == []
    assert soak.ledger.held_twice == []
    assert await tables.broken() == []
    await check_nothing_is_lost(soak, tables)
    await check_attempts(soak.ledger, tables)


async def check_nothing_is_lost(soak: Soak, tables: Tables) -> None:
    finished = [await tables.history(status) for status in ("done", "expired", "cancelled")]
    everything = {*await tables.live(), *await tables.dead(), *(task_id for tasks in finished for task_id in tasks)}
    assert everything == set(soak.ids[1:])
    acked = {delivery.task_id for delivery in soak.ledger.deliveries() if delivery.ended == "ack"}
    assert set(finished[0]) == acked


async def check_attempts(ledger: Ledger, tables: Tables) -> None:
    """The log has each delivery that counts once, and nothing else."""
    assert {task["status"] for task in (await tables.live()).values()} <= {"scheduled", "ready"}
    log = await tables.attempts()
    assert {task_id: [row["attempt_no"] for row in rows] for task_id, rows in log.items()} == ledger.attempt_numbers()
    succeeded = {row["task_id"] for rows in log.values() for row in rows if row["success"]}
    assert succeeded == {delivery.task_id for delivery in ledger.deliveries() if delivery.ended == "ack"}
