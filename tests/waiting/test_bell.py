"""PostgreSQL's notifications: without them a wake-up takes longer, and they are taken up again."""

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.repository.factory import connect_engine
from tests.conftest import MakeDatabase
from tests.waiting.conftest import StartReplica
from tests.waiting.replica import SELDOM, replica_at

LISTENERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'leasemq%' AND query ILIKE 'listen%'
"""
TERMINATE = "SELECT pg_terminate_backend(:pid)"
PATIENCE_SECONDS = 30.0


class Listeners:
    """The connections on which replicas listen."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._ended: set[int] = set()

    async def wait_for(self, count: int, beside: Collection[int] = ()) -> set[int]:
        """The process ids of so many new ones: each can be told by its statement for a while after it began."""
        seen: set[int] = set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(seen) < count:
                async with self._engine.connect() as connection:
                    seen |= set((await connection.execute(text(LISTENERS))).scalars()) - self._ended - set(beside)
                await asyncio.sleep(0.05)
        return seen

    async def end(self, pids: set[int]) -> None:
        async with self._engine.connect() as connection:
            for pid in pids:
                await connection.execute(text(TERMINATE), {"pid": pid})
        self._ended |= pids


@pytest.fixture
def url(make_database: MakeDatabase) -> str:
    return make_database("postgresql")


@pytest.fixture
async def listeners(url: str) -> AsyncIterator[Listeners]:
    engine = connect_engine(url)
    yield Listeners(engine)
    await engine.dispose()


async def test_listening_is_taken_up_again(
    url: str, listeners: Listeners, start_replica: StartReplica, tenant: str
) -> None:
    often = start_replica(url, MQ_WAIT_POLL_SECONDS="2")
    pids = await listeners.wait_for(1)
    seldom = start_replica(url, **SELDOM)
    pids |= await listeners.wait_for(1, beside=pids)
    async with replica_at(often.url, tenant) as polling, replica_at(seldom.url, tenant) as listening:
        wait = await polling.start_wait()
        await listeners.end(pids)
        task_id = await listening.enqueue()
        assert [task["id"] for task in await wait.tasks()] == [task_id]
        await listeners.wait_for(2)
        wait = await listening.start_wait()
        task_id = await polling.enqueue()
        assert await wait.soon() == [task_id]


async def test_calls_go_on_while_nobody_listens(
    url: str, listeners: Listeners, start_replica: StartReplica, tenant: str
) -> None:
    service = start_replica(url, **SELDOM)
    async with replica_at(service.url, tenant) as replica:
        for _ in range(3):
            await listeners.end(await listeners.wait_for(1))
            wait = await replica.start_wait()
            task_id = await replica.enqueue()
            assert await wait.soon() == [task_id]
