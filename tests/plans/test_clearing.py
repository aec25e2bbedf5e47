"""Clearing away, by callers and by the janitor: each batch finds its rows by index."""

import pytest

from tests.plans.conftest import NOW, START, Plans

DUTIES = (
    "move_overdue",
    "bury_ended_queues",
    "clear_graves",
    "drop_old_tombstones",
    "drop_old_history",
    "drop_old_dead_letters",
)


@pytest.mark.parametrize("duty", DUTIES)
async def test_janitor(plans: Plans, duty: str) -> None:
    await plans.topology.put(f"ends-before-{duty}", START, exclusive=True, keep_alive_seconds=1)
    await plans.topology.put("letters", NOW, dlq_days=1)
    with plans.looked_at() as looked:
        await getattr(plans.maintenance, duty)(NOW)
    if looked.about_large_tables:
        await looked.check()
        assert await looked.rows_read() < 20_000


async def test_purge(plans: Plans) -> None:
    await plans.topology.put("purged", NOW)
    await plans.filler.tasks("purged", 1500)
    await plans.filler.tasks("purged", 300, "scheduled", available_at=plans.filler.after("i + 1000000"))
    with plans.looked_at() as looked:
        assert await plans.topology.purge("purged", NOW) == 1800
    await looked.check()


async def test_purge_of_a_small_queue(plans: Plans) -> None:
    await plans.topology.put("few", NOW)
    await plans.filler.tasks("few", 10)
    with plans.looked_at() as looked:
        assert await plans.topology.purge("few", NOW) == 10
    await looked.check()


async def test_deleting_a_queue_touches_no_task(plans: Plans) -> None:
    await plans.topology.put("deleted", NOW)
    await plans.filler.tasks("deleted", 1500)
    with plans.looked_at() as looked:
        await plans.topology.delete("deleted", NOW)
    assert not looked.about_large_tables
    with plans.looked_at() as looked:
        assert await plans.maintenance.clear_graves(NOW)
    await looked.check()


async def test_cleanup(plans: Plans) -> None:
    await plans.filler.attempts("cleaned", 300)
    await plans.filler.history("cleaned", 300)
    with plans.looked_at() as looked:
        assert await plans.topology.cleanup(0, NOW, "cleaned") == 300
    await looked.check()


async def test_looking_for_work(plans: Plans) -> None:
    with plans.looked_at() as looked:
        await plans.store.repository.queues_with_work(plans.store.tenant, ["big", "small", "never"], NOW)
    await looked.check()
    assert await looked.rows_read() < 1000
