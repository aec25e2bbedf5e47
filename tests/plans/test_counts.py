"""Statistics and explanations count no further than they say."""

from app.domain.commands import TaskFilter
from app.domain.task import Status
from tests.plans.conftest import NOW, Plans

BOUND = 500


async def test_statistics(plans: Plans) -> None:
    with plans.looked_at() as looked:
        stats = await plans.topology.stats("big", NOW, bound=BOUND)
    assert not stats.exact
    await looked.check()
    # Seven states, the ready ones twice.
    assert await looked.rows_read() < 20 * BOUND


async def test_statistics_of_a_small_queue(plans: Plans) -> None:
    with plans.looked_at() as looked:
        assert (await plans.topology.stats("small", NOW)).exact
    await looked.check()
    assert await looked.rows_read() < 1000


async def test_explanation_of_the_first(plans: Plans) -> None:
    await plans.store.enqueue("first", NOW, queue="big", priority=99)
    with plans.looked_at() as looked:
        assert (await plans.topology.explain("first", NOW)).facts == {"ahead": 0}
    await looked.check()
    assert await looked.rows_read() < 100
    await plans.store.cancel("first", NOW)


async def test_explanation_of_one_far_behind(plans: Plans) -> None:
    await plans.store.enqueue("last", NOW, queue="big", priority=-1)
    with plans.looked_at() as looked:
        assert (await plans.topology.explain("last", NOW, bound=BOUND)).facts == {"ahead": BOUND}
    await looked.check()
    assert await looked.rows_read() < 4 * BOUND
    await plans.store.cancel("last", NOW)


async def test_explanation_of_one_in_the_middle(plans: Plans) -> None:
    page = await plans.store.list_live(TaskFilter(queue="big", status=Status.READY), limit=400, now=NOW)
    with plans.looked_at() as looked:
        await plans.topology.explain(page.items[-1].id, NOW)
    await looked.check()
    assert await looked.rows_read() < 1500
