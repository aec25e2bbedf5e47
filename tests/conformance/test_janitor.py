"""What a janitor does: small batches, any number of them at once, and nothing that the contract needs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import pytest

from app.domain.commands import TaskFilter
from app.domain.errors import OperationNotFound, TaskNotFound
from app.domain.task import ReservedTask, Status
from app.repository.cleaning import TOMBSTONE_AGE
from app.repository.protocol import MaintenanceRepository
from tests.conformance.steps import QUEUE, T0, Store, ack_item, at, ids, new_task
from tests.conformance.topology_steps import Emptied, sweep, until_done

DAY = 86400.0
BATCH = 1000

Duty = Callable[[MaintenanceRepository, datetime], Awaitable[object]]
DUTIES: dict[str, Duty] = {
    "move_overdue": lambda maintenance, now: maintenance.move_overdue(now),
    "bury_ended_queues": lambda maintenance, now: maintenance.bury_ended_queues(now),
    "clear_graves": lambda maintenance, now: maintenance.clear_graves(now),
    "drop_old_tombstones": lambda maintenance, now: maintenance.drop_old_tombstones(now),
    "drop_old_history": lambda maintenance, now: maintenance.drop_old_history(now),
    "drop_old_dead_letters": lambda maintenance, now: maintenance.drop_old_dead_letters(now),
    "drop_old_operations": lambda maintenance, now: maintenance.drop_old_operations(now),
}


async def ack_all(store: Store, leased: Sequence[ReservedTask]) -> None:
    await store.repository.ack_many(store.tenant, [ack_item(task) for task in leased], T0)


@pytest.mark.parametrize("name", DUTIES)
async def test_nothing_to_do(emptied: Emptied, name: str) -> None:
    assert not await DUTIES[name](emptied.maintenance, T0)


@pytest.mark.parametrize("name", DUTIES)
async def test_what_lives_is_left_alone(emptied: Emptied, name: str) -> None:
    await emptied.topology.put("ordinary", dlq_days=1)
    await emptied.topology.put("temporary", exclusive=True, keep_alive_seconds=60)
    for queue in ("ordinary", "temporary"):
        await emptied.store.finish(f"done-{queue}", queue=queue, dedupe_key="key", dedupe_seconds=60)
        await emptied.store.bury(f"dead-{queue}", queue=queue)
        await emptied.store.lease(f"leased-{queue}", queue=queue)
        await emptied.store.enqueue(f"ready-{queue}", queue=queue, ttl_seconds=60)
        await emptied.store.enqueue(f"later-{queue}", queue=queue, delay_seconds=60)
    assert not await DUTIES[name](emptied.maintenance, at(29))
    for queue in ("ordinary", "temporary"):
        for status in ("done", "dead", "leased", "ready"):
            assert await emptied.store.status(f"{status}-{queue}", at(29)) == status
        assert await emptied.store.status(f"later-{queue}", at(29)) is Status.SCHEDULED
        assert (await emptied.store.enqueue(now=at(29), queue=queue, dedupe_key="key")).existed


class TestMoveOverdue:
    async def test_what_time_has_changed(self, emptied: Emptied) -> None:
        store = emptied.store
        await store.lease("lost")
        await store.lease("exhausted", max_attempts=1)
        await store.enqueue("due", delay_seconds=10)
        await store.enqueue("expired", ttl_seconds=10)
        await store.enqueue("stays", delay_seconds=60)
        assert sum(await until_done(emptied.maintenance.move_overdue, at(30))) == 4
        assert await emptied.rows("mq_tasks") == 3
        assert await emptied.rows("mq_task_dlq") == 1
        assert await emptied.rows("mq_task_history") == 1
        assert await emptied.rows("mq_task_attempts") == 2

    async def test_in_batches(self, emptied: Emptied) -> None:
        for _ in range(3):
            await emptied.store.enqueue_many(*(new_task(ttl_seconds=10) for _ in range(700)))
        batches = await until_done(emptied.maintenance.move_overdue, at(10))
        assert (sum(batches), max(batches) <= BATCH) == (2100, True)
        assert await emptied.rows("mq_tasks") == 0

    async def test_of_all_tenants_and_queues(self, emptied: Emptied) -> None:
        stores = [Store(emptied.store.repository, f"{emptied.tenant}-{number}") for number in range(3)]
        for store in stores:
            for queue in ("one", "two"):
                await store.enqueue(queue=queue, ttl_seconds=10)
        assert sum(await until_done(emptied.maintenance.move_overdue, at(10))) == 6
        for store in stores:
            assert len((await store.list_finished(TaskFilter(Status.EXPIRED), now=at(10))).items) == 2

    async def test_two_at_once_lose_and_double_nothing(self, emptied: Emptied) -> None:
        await emptied.store.enqueue_many(*(new_task(max_attempts=1) for _ in range(300)))
        await emptied.store.reserve(limit=300)
        others = [emptied.open().maintenance for _ in range(4)]
        moved = [sum(each) for each in await asyncio.gather(*(until_done(o.move_overdue, at(30)) for o in others))]
        assert sum(moved) == 300
        assert await emptied.rows("mq_task_dlq") == 300
        assert await emptied.rows("mq_task_attempts") == 300
        assert await emptied.rows("mq_tasks") == 0

    async def test_acks_at_the_same_moment_win_or_lose_whole(self, emptied: Emptied) -> None:
        await emptied.store.enqueue_many(*(new_task() for _ in range(50)))
        leased = (await emptied.store.reserve(limit=50)).tasks
        outcomes = await asyncio.gather(
            *(emptied.store.ack(task, at(29)) for task in leased), emptied.maintenance.move_overdue(at(30))
        )
        acked = sum(1 for outcome in outcomes[:-1] if getattr(outcome, "status", None) is Status.DONE)
        counts = await emptied.topology.counts(now=at(30))
        assert counts.get("done", 0) == acked
        assert counts.get("done", 0) + counts.get("ready", 0) == 50


class TestTombstones:
    async def test_keys_that_are_held_no_longer_go(self, emptied: Emptied) -> None:
        await emptied.store.finish("first", dedupe_key="short", dedupe_seconds=10)
        await emptied.store.finish("second", dedupe_key="long", dedupe_seconds=1000)
        later = at(10) + TOMBSTONE_AGE
        assert await until_done(emptied.maintenance.drop_old_tombstones, later) == [1]
        assert await emptied.rows("mq_tasks") == 1
        assert await emptied.store.status("first", later) is Status.DONE
        assert (await emptied.store.enqueue(now=later, dedupe_key="long")).existed

    async def test_an_enqueue_that_began_within_the_window_finds_its_key(self, emptied: Emptied) -> None:
        """However late it looks: a transaction ends long before a janitor takes the key."""
        await emptied.store.finish("first", dedupe_key="short", dedupe_seconds=10)
        almost = at(10) + TOMBSTONE_AGE - timedelta(milliseconds=1)
        assert await until_done(emptied.maintenance.drop_old_tombstones, almost) == []
        enqueued = await emptied.store.enqueue(now=at(9), dedupe_key="short")
        assert (enqueued.existed, enqueued.id) == (True, "first")

    async def test_a_key_is_free_before_a_janitor_takes_it(self, emptied: Emptied) -> None:
        await emptied.store.finish("first", dedupe_key="short", dedupe_seconds=10)
        assert not (await emptied.store.enqueue(now=at(10), dedupe_key="short")).existed

    async def test_in_batches(self, emptied: Emptied) -> None:
        for start in range(0, 1500, 500):
            await emptied.store.enqueue_many(
                *(new_task(dedupe_key=f"key-{start + number}", dedupe_seconds=10) for number in range(500))
            )
            await ack_all(emptied.store, (await emptied.store.reserve(limit=500)).tasks)
        batches = await until_done(emptied.maintenance.drop_old_tombstones, at(10) + TOMBSTONE_AGE)
        assert (sum(batches), max(batches) <= BATCH) == (1500, True)


class TestHistory:
    async def test_in_batches_with_their_attempts(self, emptied: Emptied) -> None:
        await emptied.topology.put(history_days=0)
        for _ in range(3):
            await emptied.store.enqueue_many(*(new_task() for _ in range(500)))
            await ack_all(emptied.store, (await emptied.store.reserve(limit=500)).tasks)
        assert await emptied.rows("mq_task_attempts") == 1500
        batches = await until_done(emptied.maintenance.drop_old_history, at(3600))
        assert (sum(batches), max(batches) <= BATCH) == (1500, True)
        assert await emptied.rows("mq_task_history") == 0
        assert await emptied.rows("mq_task_attempts") == 0

    async def test_attempts_of_a_later_task_of_that_id_stay(self, emptied: Emptied) -> None:
        await emptied.topology.put(history_days=0)
        await emptied.store.finish("same")
        await emptied.store.finish("same", at(3000))
        assert await until_done(emptied.maintenance.drop_old_history, at(3600)) == [1]
        assert len(await emptied.store.attempts("same", at(3600))) == 1

    async def test_two_at_once(self, emptied: Emptied) -> None:
        await emptied.topology.put(history_days=0)
        await emptied.store.enqueue_many(*(new_task() for _ in range(300)))
        await ack_all(emptied.store, (await emptied.store.reserve(limit=300)).tasks)
        others = [emptied.open().maintenance for _ in range(4)]
        dropped = await asyncio.gather(*(until_done(other.drop_old_history, at(3600)) for other in others))
        assert sum(sum(each) for each in dropped) == 300


class TestDeadLetters:
    async def test_kept_for_the_days_of_their_queue(self, emptied: Emptied) -> None:
        await emptied.topology.put("days", dlq_days=2)
        await emptied.topology.put("ever")
        for queue in ("days", "ever", "undeclared"):
            await emptied.store.bury(f"old-{queue}", queue=queue)
            await emptied.store.bury(f"new-{queue}", at(DAY), queue=queue)
        assert await until_done(emptied.maintenance.drop_old_dead_letters, at(2 * DAY - 1)) == []
        assert await until_done(emptied.maintenance.drop_old_dead_letters, at(2 * DAY)) == [1]
        kept = await emptied.store.dead_ids(now=at(2 * DAY))
        assert sorted(kept) == ["new-days", "new-ever", "new-undeclared", "old-ever", "old-undeclared"]
        assert await emptied.rows("mq_task_attempts") == 5

    async def test_in_batches(self, emptied: Emptied) -> None:
        await emptied.topology.put(dlq_days=1)
        await emptied.store.bury_many(1500)
        batches = await until_done(emptied.maintenance.drop_old_dead_letters, at(DAY))
        assert (sum(batches), max(batches) <= BATCH) == (1500, True)

    async def test_requeued_one_stays(self, emptied: Emptied) -> None:
        await emptied.topology.put(dlq_days=1)
        await emptied.store.bury("first")
        await emptied.store.requeue("first", at(5))
        assert await until_done(emptied.maintenance.drop_old_dead_letters, at(2 * DAY)) == []
        assert await emptied.store.reserve_ids(at(2 * DAY)) == ["first"]

    async def test_two_at_once(self, emptied: Emptied) -> None:
        await emptied.topology.put(dlq_days=1)
        await emptied.store.bury_many(200)
        others = [emptied.open().maintenance for _ in range(4)]
        dropped = await asyncio.gather(*(until_done(other.drop_old_dead_letters, at(DAY)) for other in others))
        assert sum(sum(each) for each in dropped) == 200


class TestOperations:
    async def test_old_ones_go_a_while_after_their_end(self, emptied: Emptied) -> None:
        await emptied.store.bury("first")
        running = await emptied.topology.start_operation(0.0001)
        stopped = await emptied.topology.start_operation(1)
        await emptied.topology.stop_operation(stopped.id, at(5))
        await emptied.maintenance.drop_old_operations(at(DAY))
        assert (await emptied.topology.operation(stopped.id, at(DAY))).finished_at == at(5)
        await emptied.maintenance.drop_old_operations(at(30 * DAY))
        assert (await emptied.topology.operation(running.id, at(30 * DAY))).finished_at is None
        with pytest.raises(OperationNotFound):
            await emptied.topology.operation(stopped.id, at(30 * DAY))


@pytest.mark.parametrize("swept", [False, True])
async def test_callers_see_the_same_with_and_without_a_janitor(emptied: Emptied, swept: bool) -> None:
    """A day in the life of some queues, swept at every step or never."""
    store, topology = emptied.store, emptied.topology

    async def pass_time(seconds: float) -> datetime:
        if swept:
            await sweep(emptied.maintenance, at(seconds))
        return at(seconds)

    await topology.put(exclusive=True, keep_alive_seconds=100)
    await topology.put("other", concurrency_limit=1)
    await store.lease("lost")
    await store.lease("exhausted", max_attempts=1)
    await store.enqueue("later", delay_seconds=40, priority=1)
    await store.enqueue("short", ttl_seconds=20)
    await store.finish("done", dedupe_key="key", dedupe_seconds=50, priority=99)
    await store.lease("limited", queue="other")
    await store.enqueue("held", queue="other")

    now = await pass_time(35)
    assert await topology.counts(now=now) == {"ready": 1, "scheduled": 1, "done": 1, "dead": 1, "expired": 1}
    assert ids((await store.list_live(TaskFilter(queue=QUEUE), now=now)).items) == ["lost", "later"]
    assert (await store.enqueue(now=now, dedupe_key="key")).existed
    assert await store.reserve_ids(now, queues=["other"], limit=1) == ["limited"]

    now = await pass_time(60)
    assert not (await store.enqueue("again", now, dedupe_key="key")).existed
    assert await store.reserve_ids(now, limit=1) == ["lost"]
    assert await store.status("later", now) is Status.READY

    now = await pass_time(100)
    for task_id in ("later", "again", "lost"):
        with pytest.raises(TaskNotFound):
            await store.get(task_id, now)
    assert await store.reserve_ids(now, limit=1) == []
    assert await store.status("done", now) is Status.DONE
    assert await store.dead_ids(now=now) == ["exhausted"]
    assert await topology.names(now=now) == ["other"]
    await store.enqueue("later", now)
    assert await topology.counts(now=now) == {"ready": 1, "done": 1, "dead": 1, "expired": 1}
