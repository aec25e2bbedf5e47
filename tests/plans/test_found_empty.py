"""A database that looked at its tables while they were empty still finds tasks by index when many have come."""

from collections.abc import AsyncIterator

import pytest

from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect, open_repositories
from app.repository.schema import migrate
from tests.conformance.steps import extended, new_task, settled
from tests.conftest import DIALECTS, MakeDatabase
from tests.filling import Filler
from tests.plans.conftest import BACKLOG, NOW, START, TENANT, Plans

AT_ONCE = 1000
TIMEOUT_SECONDS = 30.0


async def look_at_tables(dialect: Dialect) -> None:
    """Without giving back their room."""
    async with dialect.connect(write=True) as connection:
        await connection.exec_driver_sql("ANALYZE TABLE mq_tasks" if dialect.name == "mysql" else "ANALYZE mq_tasks")
        await connection.commit()


@pytest.fixture(scope="module", params=DIALECTS)
async def found_empty(request: pytest.FixtureRequest, make_database: MakeDatabase) -> AsyncIterator[Plans]:
    """What was there is gone but for the room that it took: so a queue looks that is worked off."""
    dialect = connect_dialect(make_database(request.param))
    await migrate(dialect)
    repositories = open_repositories(dialect, timeout_seconds=TIMEOUT_SECONDS)
    try:
        plans = Plans(Filler(dialect, TENANT, START), repositories)
        await plans.filler.prepare(BACKLOG)
        for queue in ("big", "limited"):
            await plans.topology.put(queue, START)
        await plans.topology.patch("limited", START, concurrency_limit=1000, rate_per_second=1000)
        await plans.store.enqueue_many(*(new_task(queue="big") for _ in range(AT_ONCE)), now=NOW)
        for leased in (await plans.store.reserve(NOW, queues=["big"], limit=AT_ONCE)).tasks:
            settled(await plans.store.ack(leased, NOW))
        await look_at_tables(dialect)
        await plans.filler.tasks("big", BACKLOG)
        await plans.filler.tasks("limited", BACKLOG)
        yield plans
    finally:
        await dialect.close()


@pytest.mark.parametrize("queues", [["big"], ["limited"], ["big", "limited"]], ids=["plain", "limited", "both"])
async def test_reserve(found_empty: Plans, queues: list[str]) -> None:
    with found_empty.looked_at() as looked:
        assert (await found_empty.store.reserve(NOW, queues=queues, limit=10)).tasks
    await looked.check()


async def test_enqueue_with_dedupe_keys_and_ids(found_empty: Plans) -> None:
    tasks = [new_task(f"given-{number}", queue="big", dedupe_key=f"key-{number}") for number in range(10)]
    with found_empty.looked_at() as looked:
        await found_empty.store.enqueue_many(*tasks, now=NOW)
    await looked.check()


@pytest.mark.parametrize("verb", ["ack", "nack", "release", "fail"])
async def test_settle(found_empty: Plans, verb: str) -> None:
    leased = await found_empty.store.reserve_one(NOW, queues=["big"])
    with found_empty.looked_at() as looked:
        settled(await getattr(found_empty.store, verb)(leased, NOW))
    await looked.check()


async def test_extend(found_empty: Plans) -> None:
    leased = await found_empty.store.reserve_one(NOW, queues=["big"])
    with found_empty.looked_at() as looked:
        extended(await found_empty.store.extend(leased, NOW))
    await looked.check()
