"""The calls that every task makes: by index alone, whatever the backlog."""

import pytest

from tests.conformance.steps import extended, new_task, settled
from tests.plans.conftest import NOW, Plans

TEN = [f"queue-{number}" for number in range(10)]


async def test_enqueue(plans: Plans) -> None:
    with plans.looked_at() as looked:
        await plans.store.enqueue(now=NOW, queue="big")
    await looked.check()


async def test_enqueue_with_dedupe_keys_and_ids(plans: Plans) -> None:
    tasks = [new_task(f"given-{number}", queue="big", dedupe_key=f"key-{number}") for number in range(100)]
    with plans.looked_at() as looked:
        await plans.store.enqueue_many(*tasks, now=NOW)
    await looked.check()


@pytest.mark.parametrize("limit", [1, 100])
@pytest.mark.parametrize(
    ("queues", "types"),
    [
        (["big"], []),
        (["tiny", "big"], []),
        (TEN, []),
        (["big"], ["rare"]),
        (["big"], ["absent"]),
        (["big"], [""]),
        (TEN, ["rare", "absent"]),
        (["limited"], []),
        (["limited", "big"], []),
        (["never"], []),
    ],
    ids=["one", "two", "ten", "rare", "absent", "untyped", "ten-typed", "limited", "one-limited", "unknown"],
)
async def test_reserve(plans: Plans, queues: list[str], types: list[str], limit: int) -> None:
    with plans.looked_at() as looked:
        await plans.store.reserve(NOW, queues=queues, types=types, limit=limit)
    if queues != ["never"]:
        await looked.check()


@pytest.mark.parametrize("verb", ["ack", "nack", "release", "fail"])
async def test_settle(plans: Plans, verb: str) -> None:
    leased = await plans.store.reserve_one(NOW, queues=["big"])
    with plans.looked_at() as looked:
        settled(await getattr(plans.store, verb)(leased, NOW))
    await looked.check()


async def test_extend(plans: Plans) -> None:
    leased = await plans.store.reserve_one(NOW, queues=["big"])
    with plans.looked_at() as looked:
        extended(await plans.store.extend(leased, NOW))
    await looked.check()


async def test_settle_of_a_task_that_is_over(plans: Plans) -> None:
    leased = await plans.store.reserve_one(NOW, queues=["big"])
    settled(await plans.store.ack(leased, NOW))
    with plans.looked_at() as looked:
        settled(await plans.store.ack(leased, NOW))
    await looked.check()
