"""Replicas that are killed in the middle of heavy traffic: what was told to a caller is true, and nothing is lost."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from app.repository.factory import connect_engine
from tests.concurrency.conftest import QUIET
from tests.concurrency.fleet import Fleet, Json, Reply, fleet_of
from tests.concurrency.tables import Tables
from tests.service import Service

QUEUE = "work"
PRODUCERS = 6
WORKERS = 12
BATCH = 5
KILLS = 3
LEASE_SECONDS = 2.0
DRAIN_SECONDS = 60


@dataclass
class Traffic:
    """Producers and workers, and what they were told."""

    fleet: Fleet
    accepted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    # Batches whose reply was lost: all of it is there, or nothing.
    unknown: list[list[str]] = field(default_factory=list)
    # In the order in which the replies came.
    acked: dict[str, int] = field(default_factory=dict)
    delivered_again: list[str] = field(default_factory=list)
    stopping: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    async def run(self, kill: "Kill") -> None:
        """Lets all of them go on until the killing is over."""
        callers = [self.produce() for _ in range(PRODUCERS)] + [self.consume() for _ in range(WORKERS)]
        async with asyncio.TaskGroup() as group:
            for caller in callers:
                group.create_task(caller)
            await kill()
            self.stopping = True

    async def produce(self) -> None:
        while not self.stopping:
            ids = [f"task-{next(self._numbers)}" for _ in range(BATCH)]
            tasks = [{"queue": QUEUE, "payload": None, "id": task_id, "max_attempts": 0} for task_id in ids]
            self._note(ids, await self.fleet.post("/v1/tasks/batch", {"tasks": tasks}))
            await asyncio.sleep(random.uniform(0, 0.05))

    def _note(self, ids: list[str], reply: Reply) -> None:
        if reply.ok:
            self.accepted |= set(ids)
        elif reply.body.get("applied") is False:
            self.refused |= set(ids)
        else:
            self.unknown.append(ids)

    async def consume(self) -> None:
        while not self.stopping:
            tasks = await self.reserve(limit=BATCH, lease_seconds=LEASE_SECONDS)
            for task in tasks:
                await self.ack(task)
            if not tasks:
                await asyncio.sleep(0.05)

    async def reserve(self, limit: int, lease_seconds: float) -> list[Json]:
        """Takes some tasks, and notes those whose ack was a success before anybody asked for them again."""
        known = len(self.acked)
        reply = await self.fleet.reserve(queues=[QUEUE], limit=limit, lease_seconds=lease_seconds)
        tasks: list[Json] = reply["tasks"]
        self.delivered_again += [task["id"] for task in tasks if self.acked.get(task["id"], known) < known]
        return tasks

    async def ack(self, task: Json) -> None:
        """A lost reply is no reason to give up: the other replica is asked."""
        first = random.randrange(2)
        for replica in (first, 1 - first):
            reply = await self.fleet.settle("ack", task, replica)
            if reply.status != 0:
                if reply.ok:
                    self.acked.setdefault(task["id"], len(self.acked))
                return


class Kill:
    """Kills one replica after the other, and starts it again."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    async def __call__(self) -> None:
        for number in range(KILLS):
            await asyncio.sleep(random.uniform(0.5, 1.0))
            service = self._services[number % 2]
            service.kill()
            await asyncio.to_thread(service.start)


@pytest.fixture
async def services(database_url: str, tmp_path: Path) -> AsyncIterator[Sequence[Service]]:
    """Two replicas of the test's own."""
    with ExitStack() as stack:
        services = [Service(database_url, tmp_path / f"{number}.log", environment=QUIET) for number in range(2)]
        for service in services:
            stack.callback(service.close)
            service.start()
        yield services


@pytest.fixture
async def own_tables(database_url: str, tenant: str) -> AsyncIterator[Tables]:
    engine = connect_engine(database_url)
    yield Tables(engine, tenant)
    await engine.dispose()


async def test_what_callers_were_told_survives_kills(
    services: Sequence[Service], own_tables: Tables, tenant: str
) -> None:
    async with fleet_of([service.url for service in services], tenant, may_die=True) as fleet:
        traffic = Traffic(fleet)
        await traffic.run(Kill(services))
        await check(traffic, own_tables)
        await drain(traffic)
        await check(traffic, own_tables)
        # What was leased by a caller that never got the reply came back, and nothing was done twice.
        assert (await own_tables.live(), await own_tables.dead()) == ({}, {})
        log = (await own_tables.attempts()).values()
        assert {sum(bool(row["success"]) for row in rows) for rows in log} == {1}
        assert not [failure for failure in fleet.failures if '"internal"' in failure]


async def check(traffic: Traffic, tables: Tables) -> None:
    live, done = set(await tables.live()), set(await tables.history("done"))
    assert await tables.broken() == []
    assert traffic.accepted
    assert traffic.acked
    assert traffic.accepted <= live | done
    assert traffic.acked.keys() <= done
    assert traffic.delivered_again == []
    assert traffic.refused.isdisjoint(live | done)
    for ids in traffic.unknown:
        assert len((live | done) & set(ids)) in {0, BATCH}


async def drain(traffic: Traffic) -> None:
    """Works off everything, what comes back by the end of its lease included."""
    async with asyncio.timeout(DRAIN_SECONDS):
        while (await traffic.fleet.get("/v1/tasks?limit=1")).body["items"]:
            tasks = await traffic.reserve(limit=200, lease_seconds=30)
            await (traffic.fleet.settle_many("ack", tasks) if tasks else asyncio.sleep(0.1))
