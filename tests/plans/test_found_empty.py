"""A database that looked at its tables while they were empty still finds tasks by index when many have come."""

from collections.abc import AsyncIterator

import pytest

from tests.conformance.steps import extended, new_task, settled
from tests.conftest import DIALECTS, MakeDatabase
from tests.plans.conftest import NOW, Plans, once_found_empty


@pytest.fixture(scope="module", params=DIALECTS)
async def found_empty(request: pytest.FixtureRequest, make_database: MakeDatabase) -> AsyncIterator[Plans]:
    async with once_found_empty(make_database(request.param)) as plans:
        yield plans


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
