"""Very many callers that wait: each task goes to one of them, and they cost next to nothing while they wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.repository.factory import connect_engine
from tests.conftest import MakeDatabase
from tests.service import Service
from tests.waiting.conftest import StartReplica
from tests.waiting.replica import SETTLE_SECONDS, Replica, Wait, client_at, replica_at

CROWD = 300
THOUSAND = 1000
CROWDED = "crowded"
AT_ONCE = 100
PATIENCE_SECONDS = 120.0
WATCHED_SECONDS = 2.0
COMMITS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
STATEMENTS = (
    "SELECT sum(count_star) FROM performance_schema.events_statements_summary_by_digest WHERE schema_name = database()"
)


async def taken_by(waits: list[Wait]) -> list[str]:
    return [task["id"] for wait in waits for task in await wait.tasks()]


async def one_task(client: httpx.AsyncClient) -> str:
    """What a worker does: it asks until it gets a task, and again when it is told to come back later."""
    while True:
        response = await client.post("/v1/reserve", json={"queues": [CROWDED], "wait_seconds": 30})
        if response.status_code == 503:
            await asyncio.sleep(float(response.headers["Retry-After"]))
        elif tasks := response.json()["tasks"]:
            [task] = tasks
            return str(task["id"])


@asynccontextmanager
async def thousand_at(url: str, tenant: str) -> AsyncIterator[list[asyncio.Task[str]]]:
    """A thousand callers that wait, or are about to; they come a hundred at a time."""
    callers: list[asyncio.Task[str]] = []
    async with AsyncExitStack() as stack:
        for _ in range(THOUSAND // AT_ONCE):
            client = await stack.enter_async_context(client_at(url, tenant))
            callers += [asyncio.create_task(one_task(client)) for _ in range(AT_ONCE)]
            await asyncio.sleep(SETTLE_SECONDS)
        try:
            yield callers
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)


async def test_each_of_a_crowd_gets_one(here: Replica) -> None:
    waits = await here.start_waits(CROWD, wait_seconds=30)
    first = await here.enqueue()
    await asyncio.sleep(SETTLE_SECONDS)
    over = [wait for wait in waits if wait.is_over]
    assert await taken_by(over) == [first]
    rest = [wait for wait in waits if not wait.is_over]
    ids = await here.enqueue_many(CROWD - 1)
    assert sorted(await taken_by(rest)) == sorted(ids)


async def test_each_of_a_crowd_gets_one_that_another_replica_took(here: Replica, there: Replica) -> None:
    waits = await there.start_waits(CROWD // 3, wait_seconds=30)
    ids = await here.enqueue_many(CROWD // 3)
    assert sorted(await taken_by(waits)) == sorted(ids)


async def test_a_crowd_at_two_replicas(here: Replica, there: Replica) -> None:
    waits = [*await here.start_waits(50, wait_seconds=30), *await there.start_waits(50, wait_seconds=30)]
    ids = [await here.enqueue() for _ in range(100)]
    assert sorted(await taken_by(waits)) == sorted(ids)


async def test_waits_hold_no_connection(database_url: str, start_replica: StartReplica, tenant: str) -> None:
    service = start_replica(database_url, MQ_DATABASE_POOL_SIZE="1")
    async with replica_at(service.url, tenant) as replica:
        waits = await replica.start_waits(5, queues=["idle"], wait_seconds=30)
        for _ in range(20):
            task_id = await replica.enqueue()
            task = await replica.lease()
            assert task["id"] == task_id
            await replica.settle("ack", task)
        for wait in waits:
            wait.check_waiting()
        ids = await replica.enqueue_many(5, queue="idle")
        assert sorted(await taken_by(waits)) == sorted(ids)


@pytest.fixture(params=["postgresql", "mysql"])
async def watched(
    request: pytest.FixtureRequest, make_database: MakeDatabase, tmp_path: Path
) -> AsyncIterator[tuple[Service, "Watch"]]:
    """A replica that is alone on its database, and a count of what it asks of it."""
    url = make_database(request.param)
    engine = connect_engine(url)
    with Service(url, tmp_path / "watched.log") as service:
        yield service, Watch(engine, {"postgresql": COMMITS, "mysql": STATEMENTS}[request.param])
    await engine.dispose()


class Watch:
    def __init__(self, engine: AsyncEngine, statement: str) -> None:
        self._engine = engine
        self._statement = statement

    async def count(self) -> int:
        async with self._engine.connect() as connection:
            return int((await connection.execute(text(self._statement))).scalar_one())

    async def until_below(self, most: float) -> None:
        """Returns when so little is asked for in a while; a crowd that has just come must look once."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.over_a_while() >= most:
                pass

    async def over_a_while(self) -> int:
        """How much was asked for in a while; servers count a moment late."""
        await asyncio.sleep(1.5)
        before = await self.count()
        await asyncio.sleep(WATCHED_SECONDS)
        return await self.count() - before


async def test_a_thousand_ask_for_next_to_nothing(watched: tuple[Service, Watch], tenant: str) -> None:
    """They cost so little that hundreds of them together do not look once a second."""
    service, watch = watched
    alone = await watch.over_a_while()
    async with thousand_at(service.url, tenant) as callers:
        await watch.until_below(alone + THOUSAND // 20 * WATCHED_SECONDS)
        assert not any(caller.done() for caller in callers)


async def test_a_thousand_get_one_each(database_url: str, start_replica: StartReplica, tenant: str) -> None:
    """With two connections to the database, which others use meanwhile."""
    service = start_replica(database_url, MQ_DATABASE_POOL_SIZE="2")
    async with thousand_at(service.url, tenant) as callers, replica_at(service.url, tenant) as replica:
        for _ in range(20):
            task_id = await replica.enqueue()
            task = await replica.lease()
            assert task["id"] == task_id
            await replica.settle("ack", task)
        assert not any(caller.done() for caller in callers)
        ids = await replica.enqueue_many(THOUSAND, queue=CROWDED)
        assert sorted(await asyncio.gather(*callers)) == sorted(ids)


@pytest.mark.parametrize(
    "settings",
    [
        {"paused": True},
        {"concurrency_limit": 1},
        {"rate_per_second": 0.001},
        {"rate_per_second": 1000, "concurrency_limit": 1},
    ],
    ids=["paused", "concurrency", "rate", "both"],
)
async def test_callers_behind_a_limit_ask_for_little(
    watched: tuple[Service, Watch], tenant: str, settings: dict[str, float]
) -> None:
    service, watch = watched
    async with replica_at(service.url, tenant) as replica:
        await replica.call("PUT", "/v1/queues/work", settings)
        await replica.enqueue_many(10)
        await replica.reserve(lease_seconds=600)
        alone = await watch.over_a_while()
        waits = await replica.start_waits(10, wait_seconds=30)
        assert await watch.over_a_while() < alone + CROWD * WATCHED_SECONDS / 2
        await asyncio.gather(*(wait.hang_up() for wait in waits))
