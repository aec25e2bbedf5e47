"""Accepting tasks: order, all or none, ids, and when a task is due."""

from datetime import timedelta

import pytest

from app.domain.errors import TaskExists, TaskNotFound
from app.domain.task import Enqueued, Status
from app.repository.protocol import Repository
from tests.conformance.steps import QUEUE, T0, Store, at, ids, new_task


async def test_accepted_task_is_ready_now(store: Store) -> None:
    assert await store.enqueue("a") == Enqueued("a", QUEUE, Status.READY, T0, existed=False)


async def test_new_task_has_what_it_was_given_and_nothing_else(store: Store) -> None:
    await store.enqueue("a", topic="news", type="mail", priority=7, max_attempts=3, timeout_seconds=1.5, publish_id="p")
    task = await store.get("a")
    assert (task.tenant_id, task.id, task.queue) == (store.tenant, "a", QUEUE)
    assert (task.topic, task.type, task.priority, task.publish_id) == ("news", "mail", 7, "p")
    assert (task.attempts, task.max_attempts, task.timeout_seconds) == (0, 3, 1.5)
    assert (task.available_at, task.created_at, task.updated_at) == (T0, T0, T0)
    unset = (task.expires_at, task.dedupe_key, task.lease_owner, task.lease_until, task.last_error, task.last_error_at)
    assert unset == (None,) * 6
    assert (task.result, task.first_leased_at, task.finished_at) == (None, None, None)


async def test_batch_is_answered_in_input_order(store: Store) -> None:
    names = [f"task-{number}" for number in (3, 1, 2)]
    assert ids(await store.enqueue_many(*map(new_task, names))) == names


async def test_batch_is_accepted_in_input_order(store: Store) -> None:
    names = [f"task-{number * 7 % 50}" for number in range(50)]
    await store.enqueue_many(*map(new_task, names))
    assert ids((await store.list_live()).items) == names
    assert await store.reserve_ids() == names


async def test_thousand_tasks_are_one_batch(store: Store) -> None:
    tasks = [new_task() for _ in range(1000)]
    assert ids(await store.enqueue_many(*tasks)) == [task.id for task in tasks]
    assert len(await store.reserve_ids(limit=1000)) == 1000


async def test_one_taken_id_refuses_the_whole_batch(store: Store) -> None:
    await store.enqueue("taken")
    with pytest.raises(TaskExists, match="'taken'"):
        await store.enqueue_many(new_task("before"), new_task("taken"), new_task("after"))
    assert ids((await store.list_live()).items) == ["taken"]


async def test_id_twice_in_a_batch_refuses_the_whole_batch(store: Store) -> None:
    with pytest.raises(TaskExists, match="'twice'"):
        await store.enqueue_many(new_task("once"), new_task("twice"), new_task("twice"))
    assert (await store.list_live()).items == []


async def test_id_is_taken_in_every_queue_of_the_tenant(store: Store) -> None:
    await store.enqueue("a", queue="one")
    with pytest.raises(TaskExists):
        await store.enqueue("a", queue="two")


async def test_id_of_another_tenant_is_free(store: Store, other_store: Store) -> None:
    await store.enqueue("a", priority=1)
    await other_store.enqueue("a", priority=2)
    assert ((await store.get("a")).priority, (await other_store.get("a")).priority) == (1, 2)


@pytest.mark.parametrize("state", ["scheduled", "ready", "leased"])
async def test_id_of_a_live_task_is_taken(store: Store, state: str) -> None:
    await store.enqueue("a", delay_seconds=60 if state == "scheduled" else 0)
    if state == "leased":
        await store.reserve_one()
    with pytest.raises(TaskExists):
        await store.enqueue("a")


async def test_id_of_a_done_task_is_free(store: Store) -> None:
    await store.finish("a")
    await store.enqueue("a", now=at(1))
    assert await store.status("a", at(1)) is Status.READY


async def test_id_of_a_done_task_is_free_while_its_dedupe_key_is_held(store: Store) -> None:
    await store.finish("a", dedupe_key="key", dedupe_seconds=60)
    await store.enqueue("a", now=at(1), dedupe_key="other key")
    assert await store.status("a", at(1)) is Status.READY


async def test_id_may_be_used_again_and_again_while_keys_are_held(store: Store) -> None:
    for number in range(3):
        await store.finish("a", at(number), dedupe_key=f"key-{number}", dedupe_seconds=60)
    assert (await store.enqueue("b", at(3), dedupe_key="key-0")).existed
    assert (await store.get("a", at(3))).finished_at == at(2)


async def test_id_of_a_dead_task_is_free(store: Store) -> None:
    await store.bury("a")
    await store.enqueue("a", now=at(1))
    assert await store.status("a", at(1)) is Status.READY


async def test_id_of_a_cancelled_task_is_free(store: Store) -> None:
    await store.enqueue("a")
    await store.cancel("a")
    await store.enqueue("a", now=at(1))
    assert await store.status("a", at(1)) is Status.READY


async def test_id_of_an_expired_task_is_free_though_nobody_moved_it(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10)
    with pytest.raises(TaskExists):
        await store.enqueue("a", now=at(9.999999))
    await store.enqueue("a", now=at(10))
    assert await store.status("a", at(10)) is Status.READY


async def test_id_is_free_once_the_last_lease_ran_out_though_nobody_moved_it(store: Store) -> None:
    await store.lease("a", max_attempts=1)
    with pytest.raises(TaskExists):
        await store.enqueue("a", now=at(29))
    await store.enqueue("a", now=at(30))
    assert (await store.dead_letter("a", at(30))).reason == "lease expired"


async def test_id_is_taken_while_a_lost_lease_may_be_retried(store: Store) -> None:
    await store.lease("a", max_attempts=2)
    with pytest.raises(TaskExists):
        await store.enqueue("a", now=at(30))


async def test_delay_schedules_the_task(store: Store) -> None:
    assert await store.enqueue("a", delay_seconds=1.5) == Enqueued("a", QUEUE, Status.SCHEDULED, at(1.5), existed=False)


async def test_available_at_schedules_the_task(store: Store) -> None:
    enqueued = await store.enqueue("a", available_at=at(60))
    assert (enqueued.status, enqueued.available_at) == (Status.SCHEDULED, at(60))


@pytest.mark.parametrize("seconds", [0, -0.000001, -86400])
async def test_available_at_that_is_not_ahead_is_ready(store: Store, seconds: float) -> None:
    enqueued = await store.enqueue("a", available_at=at(seconds))
    assert (enqueued.status, enqueued.available_at) == (Status.READY, at(seconds))


async def test_ttl_counts_from_acceptance_not_from_the_due_time(store: Store) -> None:
    await store.enqueue("a", delay_seconds=60, ttl_seconds=90)
    assert (await store.get("a")).expires_at == at(90)


async def test_without_an_instant_the_databases_clock_decides(repository: Repository, tenant: str) -> None:
    [enqueued] = await repository.enqueue_many(tenant, [new_task("a", delay_seconds=3600)])
    task = await repository.get_task(tenant, "a")
    assert enqueued.available_at - task.created_at == timedelta(hours=1)


async def test_unknown_task_is_not_found(store: Store) -> None:
    with pytest.raises(TaskNotFound, match="'nobody'"):
        await store.get("nobody")
