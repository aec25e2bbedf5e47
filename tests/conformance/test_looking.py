"""Looking at tasks: one by its id in whatever state, and lists that show what stays put exactly once."""

from collections.abc import Awaitable, Callable

import pytest

from app.domain.commands import FinishedKey, LiveKey, TaskFilter
from app.domain.errors import TaskNotFound
from app.domain.task import Status, Task
from tests.conformance.steps import LIVE, T0, Store, ack_item, at, ids, new_task, settled


class TestOneTask:
    """A task is found by its id in every state that it can be in."""

    async def test_scheduled(self, store: Store) -> None:
        await store.enqueue("a", delay_seconds=60)
        assert await store.status("a", at(59.999999)) is Status.SCHEDULED

    async def test_due_though_nobody_moved_it(self, store: Store) -> None:
        await store.enqueue("a", delay_seconds=60)
        task = await store.get("a", at(60))
        assert (task.status, task.available_at) == (Status.READY, at(60))

    async def test_ready(self, store: Store) -> None:
        await store.enqueue("a")
        assert await store.status("a") is Status.READY

    async def test_leased(self, store: Store) -> None:
        await store.lease("a")
        assert await store.status("a", at(29.999999)) is Status.LEASED

    async def test_lease_over_though_nobody_moved_it(self, store: Store) -> None:
        await store.lease("a")
        assert await store.status("a", at(30)) is Status.READY

    async def test_done(self, store: Store) -> None:
        await store.finish("a")
        assert await store.status("a") is Status.DONE

    async def test_dead(self, store: Store) -> None:
        await store.bury("a")
        assert await store.status("a") is Status.DEAD

    async def test_expired(self, store: Store) -> None:
        await store.enqueue("a", ttl_seconds=1)
        assert await store.status("a", at(1)) is Status.EXPIRED

    async def test_cancelled(self, store: Store) -> None:
        await store.enqueue("a")
        await store.cancel("a")
        assert await store.status("a") is Status.CANCELLED

    async def test_of_another_tenant(self, store: Store, other_store: Store) -> None:
        await store.enqueue("live")
        await store.finish("done", at(1), queue="other")
        for name in ("live", "done"):
            with pytest.raises(TaskNotFound):
                await other_store.get(name, at(1))

    async def test_live_one_comes_before_finished_ones(self, store: Store) -> None:
        await store.finish("a")
        await store.enqueue("a", at(1))
        assert await store.status("a", at(1)) is Status.READY

    async def test_last_finished_one_comes_first(self, store: Store) -> None:
        await store.finish("a", at(1))
        await store.bury("a", at(2))
        assert await store.status("a", at(3)) is Status.DEAD
        await store.finish("a", at(4))
        task = await store.get("a", at(5))
        assert (task.status, task.finished_at) == (Status.DONE, at(4))


class TestLiveTasks:
    """Live tasks are listed in order of acceptance."""

    async def test_order_of_acceptance_whatever_the_priority(self, store: Store) -> None:
        await store.enqueue_many(new_task("a", priority=1), new_task("b", priority=9), new_task("c", delay_seconds=9))
        assert ids((await store.list_live()).items) == ["a", "b", "c"]

    async def test_tasks_are_whole(self, store: Store) -> None:
        leased = await store.lease("a")
        await store.enqueue("b", meta='{"a":1}', type="mail", ttl_seconds=60)
        assert (await store.list_live()).items == [leased.task, await store.get("b")]

    async def test_finished_tasks_are_not_among_them(self, store: Store) -> None:
        await store.finish("done", dedupe_key="key", dedupe_seconds=60)
        await store.bury("dead")
        await store.enqueue("cancelled")
        await store.cancel("cancelled")
        assert (await store.list_live()).items == []

    async def test_other_tenants_are_not_among_them(self, store: Store, other_store: Store) -> None:
        await store.enqueue("a")
        assert (await other_store.list_live()).items == []

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (None, ["ready", "leased", "scheduled", "late"]),
            (Status.READY, ["ready"]),
            (Status.LEASED, ["leased"]),
            (Status.SCHEDULED, ["scheduled", "late"]),
        ],
    )
    async def test_status(self, store: Store, status: Status | None, expected: list[str]) -> None:
        await self.one_of_each(store)
        assert ids((await store.list_live(TaskFilter(status))).items) == expected

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (None, ["ready", "leased", "scheduled", "late"]),
            (Status.READY, ["ready", "leased", "scheduled"]),
            (Status.LEASED, []),
            (Status.SCHEDULED, ["late"]),
        ],
    )
    async def test_status_that_only_time_changed(
        self, store: Store, status: Status | None, expected: list[str]
    ) -> None:
        await self.one_of_each(store)
        page = await store.list_live(TaskFilter(status), now=at(30))
        assert ids(page.items) == expected
        assert all(task.status is (status or task.status) for task in page.items)
        assert {(task.lease_owner, task.lease_until) for task in page.items} <= {(None, None)}

    async def one_of_each(self, store: Store) -> None:
        await store.enqueue("ready", priority=1)
        await store.enqueue("leased", priority=9)
        await store.enqueue("scheduled", delay_seconds=30)
        await store.enqueue("late", delay_seconds=60)
        assert (await store.reserve_one()).task.id == "leased"

    @pytest.mark.parametrize(
        ("task_filter", "expected"),
        [
            (TaskFilter(queue="one"), ["a", "b"]),
            (TaskFilter(type="mail"), ["a", "c"]),
            (TaskFilter(type=""), ["b"]),
            (TaskFilter(topic="news"), ["b", "c"]),
            (TaskFilter(topic="one"), ["a"]),
            (TaskFilter(queue="one", type="mail"), ["a"]),
            (TaskFilter(Status.READY, "two", "mail", "news"), ["c"]),
            (TaskFilter(queue="three"), []),
        ],
    )
    async def test_filters(self, store: Store, task_filter: TaskFilter, expected: list[str]) -> None:
        await store.enqueue("a", queue="one", type="mail")
        await store.enqueue("b", queue="one", topic="news")
        await store.enqueue("c", queue="two", type="mail", topic="news")
        assert ids((await store.list_live(task_filter)).items) == expected

    async def test_last_page_has_no_next(self, store: Store) -> None:
        await store.enqueue_many(new_task("a"), new_task("b"))
        assert (await store.list_live(limit=2)).next_key is None
        page = await store.list_live(limit=1)
        assert page.next_key is not None
        assert ids((await store.list_live(limit=1, after=page.next_key)).items) == ["b"]

    async def test_pages_show_what_stays_put_exactly_once(self, store: Store) -> None:
        await store.enqueue_many(*(new_task(f"stays-{number}") for number in range(10)))
        await store.enqueue_many(*(new_task(f"goes-{number}") for number in range(4)))
        seen: list[str] = []
        after: LiveKey | None = None
        for number in range(100):
            page = await store.list_live(limit=3, after=after)
            seen += ids(page.items)
            after = page.next_key
            if after is None:
                break
            if number < 4:
                await store.cancel(f"goes-{number}")
            await store.enqueue(f"comes-{number}", priority=99)
        assert [name for name in seen if name.startswith("stays")] == [f"stays-{number}" for number in range(10)]
        assert len(seen) == len(set(seen))

    async def test_pages_of_a_filter(self, store: Store) -> None:
        await store.enqueue_many(*(new_task(f"t{number}", queue=f"q{number % 2}") for number in range(6)))
        page = await store.list_live(TaskFilter(queue="q1"), limit=2)
        assert ids(page.items) == ["t1", "t3"]
        assert ids((await store.list_live(TaskFilter(queue="q1"), limit=2, after=page.next_key)).items) == ["t5"]


async def finish_by_ack(store: Store, name: str, seconds: float) -> None:
    await store.finish(name, at(seconds), queue=name)


async def finish_by_cancel(store: Store, name: str, seconds: float) -> None:
    await store.enqueue(name, at(seconds))
    await store.cancel(name, at(seconds))


async def finish_by_expiry(store: Store, name: str, seconds: float) -> None:
    await store.enqueue(name, expires_at=at(seconds))


async def finish_by_fail(store: Store, name: str, seconds: float) -> None:
    await store.bury(name, at(seconds), queue=name)


ENDINGS: dict[Status, Callable[[Store, str, float], Awaitable[None]]] = {
    Status.DONE: finish_by_ack,
    Status.CANCELLED: finish_by_cancel,
    Status.EXPIRED: finish_by_expiry,
    Status.DEAD: finish_by_fail,
}


@pytest.mark.parametrize("status", ENDINGS)
class TestFinishedTasks:
    """Finished tasks are listed newest first, whichever way they ended."""

    async def test_newest_first(self, store: Store, status: Status) -> None:
        for name, seconds in [("second", 2), ("third", 3), ("first", 1)]:
            await ENDINGS[status](store, name, seconds)
        page = await store.list_finished(TaskFilter(status), now=at(10))
        assert ids(page.items) == ["third", "second", "first"]
        assert [task.finished_at for task in page.items] == [at(3), at(2), at(1)]
        assert {task.status for task in page.items} == {status}

    async def test_tasks_are_whole(self, store: Store, status: Status) -> None:
        await ENDINGS[status](store, "a", 1)
        assert (await store.list_finished(TaskFilter(status), now=at(10))).items == [await store.get("a", at(10))]

    async def test_other_endings_are_not_among_them(self, store: Store, status: Status) -> None:
        for other, end in ENDINGS.items():
            await end(store, f"by-{other}", 1)
        assert ids((await store.list_finished(TaskFilter(status), now=at(10))).items) == [f"by-{status}"]

    async def test_other_tenants_are_not_among_them(self, store: Store, other_store: Store, status: Status) -> None:
        await ENDINGS[status](store, "a", 1)
        assert (await other_store.list_finished(TaskFilter(status), now=at(10))).items == []

    async def test_pages_of_tasks_that_finished_at_the_same_instant(self, store: Store, status: Status) -> None:
        for number in range(7):
            await ENDINGS[status](store, f"t{number}", 1)
        seen: list[str] = []
        after: FinishedKey | None = None
        while True:
            page = await store.list_finished(TaskFilter(status), limit=2, after=after, now=at(10))
            seen += ids(page.items)
            after = page.next_key
            if after is None:
                break
            await ENDINGS[status](store, f"new-{len(seen)}", 5)
        assert sorted(seen) == [f"t{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("task_filter", "expected"),
    [
        (TaskFilter(Status.DONE, queue="one"), ["b", "a"]),
        (TaskFilter(Status.DONE, type="mail"), ["c", "a"]),
        (TaskFilter(Status.DONE, topic="news"), ["c", "b"]),
        (TaskFilter(Status.DONE, "two", "mail", "news"), ["c"]),
        (TaskFilter(Status.DONE, queue="three"), []),
        (TaskFilter(Status.DEAD, queue="one"), ["x"]),
        (TaskFilter(Status.DEAD, type="mail"), ["x"]),
        (TaskFilter(Status.DEAD, topic="news"), []),
    ],
)
async def test_filters_of_finished_tasks(store: Store, task_filter: TaskFilter, expected: list[str]) -> None:
    await store.finish("a", at(1), queue="one", type="mail")
    await store.finish("b", at(2), queue="one", topic="news")
    await store.finish("c", at(3), queue="two", type="mail", topic="news")
    await store.bury("x", at(4), queue="one", type="mail")
    assert ids((await store.list_finished(task_filter, now=at(5))).items) == expected


async def test_lost_last_leases_of_many_are_all_listed(store: Store) -> None:
    await store.enqueue_many(*(new_task(max_attempts=1) for _ in range(1000)))
    await store.reserve(limit=1000)
    await store.enqueue_many(*(new_task(ttl_seconds=10) for _ in range(300)))
    pages = [
        await store.list_finished(TaskFilter(status), limit=2000, now=at(31))
        for status in (Status.DEAD, Status.EXPIRED)
    ]
    assert [len(page.items) for page in pages] == [1000, 300]
    assert (await store.list_live(LIVE, now=at(31))).items == []


async def test_every_task_is_either_live_or_finished(store: Store) -> None:
    await store.enqueue_many(*(new_task(str(number), max_attempts=1) for number in range(9)))
    leased = (await store.reserve(limit=6)).tasks
    await store.repository.ack_many(store.tenant, [ack_item(task) for task in leased[:2]], T0)
    settled(await store.fail(leased[2]))
    settled(await store.release(leased[3]))
    await store.cancel("8")
    found: list[Task] = list((await store.list_live(now=at(31))).items)
    for status in ENDINGS:
        found += (await store.list_finished(TaskFilter(status), now=at(31))).items
    assert sorted(ids(found)) == [str(number) for number in range(9)]
