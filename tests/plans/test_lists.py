"""Lists: a page costs about as much as it shows, whatever else there is."""

import pytest

from app.domain.commands import DeadLetterFilter, FinishedKey, LiveKey, TaskFilter
from app.domain.task import Status
from tests.plans.conftest import BACKLOG, NOW, START, Plans

FINISHED = (Status.DONE, Status.EXPIRED, Status.CANCELLED)
QUEUES = ("big", "small", None)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("status", [None, Status.READY, Status.SCHEDULED, Status.LEASED])
async def test_live_tasks(plans: Plans, queue: str | None, status: Status | None) -> None:
    """Those of a queue in a state may have to be sorted, but no others are looked at for long."""
    task_filter = TaskFilter(queue=queue, status=status)
    first = await plans.store.list_live(task_filter, limit=10, now=NOW)
    assert first.next_key is not None
    for after in (None, first.next_key):
        with plans.looked_at() as looked:
            page = await plans.store.list_live(task_filter, limit=10, after=after, now=NOW)
        assert len(page.items) == 10
        await looked.check(may_sort=True)
        assert await looked.rows_read() < BACKLOG // 2


@pytest.mark.parametrize("queue", ["big", None])
async def test_live_tasks_of_most(plans: Plans, queue: str | None) -> None:
    """Where most rows are asked for nothing is sorted."""
    with plans.looked_at() as looked:
        page = await plans.store.list_live(TaskFilter(queue=queue), limit=10, now=NOW)
    assert len(page.items) == 10
    await looked.check()
    assert await looked.rows_read() < 1000


async def test_live_tasks_of_the_end(plans: Plans) -> None:
    with plans.looked_at() as looked:
        page = await plans.store.list_live(TaskFilter(queue="big"), limit=10, after=LiveKey(10**9), now=NOW)
    assert not page.items
    await looked.check()


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("status", FINISHED)
async def test_finished_tasks(plans: Plans, queue: str | None, status: Status) -> None:
    for after in (None, FinishedKey(START.replace(hour=23), 10**6)):
        with plans.looked_at() as looked:
            await plans.store.list_finished(TaskFilter(queue=queue, status=status), limit=10, after=after, now=NOW)
        await looked.check()
        assert await looked.rows_read() < 1000


@pytest.mark.parametrize("queue", QUEUES)
async def test_dead_letters(plans: Plans, queue: str | None) -> None:
    for after in (None, FinishedKey(START.replace(hour=20), 10**6)):
        with plans.looked_at() as looked:
            await plans.store.list_dead_letters(DeadLetterFilter(queue), limit=10, after=after, now=NOW)
        await looked.check()
        assert await looked.rows_read() < 1000


async def test_dead_letters_of_a_while(plans: Plans) -> None:
    with plans.looked_at() as looked:
        letters = DeadLetterFilter("big", before=START.replace(hour=20))
        await plans.store.list_dead_letters(letters, limit=10, now=NOW)
    await looked.check()
    assert await looked.rows_read() < 1000


async def test_requeue_of_some_ids(plans: Plans) -> None:
    page = await plans.store.list_dead_letters(DeadLetterFilter("big"), limit=3, now=NOW)
    with plans.looked_at() as looked:
        requeued = await plans.store.requeue_many(
            DeadLetterFilter(ids=[letter.task.id for letter in page.items]), now=NOW
        )
    assert requeued.requeued == 3
    await looked.check()


async def test_one_task(plans: Plans) -> None:
    [task] = (await plans.store.list_live(TaskFilter(queue="big"), limit=1, now=NOW)).items
    with plans.looked_at() as looked:
        await plans.store.get(task.id, NOW)
        await plans.store.attempts(task.id, NOW)
    await looked.check()


async def test_one_finished_task(plans: Plans) -> None:
    [task] = (await plans.store.list_finished(TaskFilter(queue="big", status=Status.DONE), limit=1, now=NOW)).items
    with plans.looked_at() as looked:
        await plans.store.get(task.id, NOW)
        await plans.store.attempts(task.id, NOW)
    await looked.check()
