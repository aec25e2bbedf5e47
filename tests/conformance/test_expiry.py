"""Deadlines: looked at whenever a task is not leased, and never ending a running lease."""

import pytest

from app.domain.commands import TaskEdit, TaskFilter
from app.domain.task import Status
from tests.conformance.steps import T0, Store, at, ids, settled


async def test_ready_task_expires_at_its_deadline(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10)
    assert await store.status("a", at(9.999999)) is Status.READY
    assert await store.status("a", at(10)) is Status.EXPIRED


async def test_scheduled_task_expires_at_its_deadline(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10, delay_seconds=60)
    assert await store.status("a", at(9.999999)) is Status.SCHEDULED
    assert await store.status("a", at(10)) is Status.EXPIRED


async def test_absolute_deadline(store: Store) -> None:
    await store.enqueue("a", expires_at=at(10))
    assert (await store.get("a")).expires_at == at(10)
    assert await store.status("a", at(10)) is Status.EXPIRED


async def test_expired_task_is_dated_at_its_deadline_however_late_it_is_noticed(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10)
    task = await store.get("a", at(1000))
    assert (task.status, task.finished_at, task.lease_owner) == (Status.EXPIRED, at(10), None)


async def test_running_lease_is_not_ended(store: Store) -> None:
    leased = await store.lease("a", ttl_seconds=10)
    assert await store.status("a", at(20)) is Status.LEASED
    settled(await store.ack(leased, at(20)))
    assert await store.status("a", at(20)) is Status.DONE


async def test_lease_may_be_extended_past_the_deadline(store: Store) -> None:
    leased = await store.lease("a", ttl_seconds=10)
    await store.extend(leased, at(20), lease_seconds=100)
    assert await store.status("a", at(119)) is Status.LEASED


async def test_task_expires_when_its_lease_runs_out(store: Store) -> None:
    await store.lease("a", ttl_seconds=10)
    assert await store.reserve_ids(at(30)) == []
    task = await store.get("a", at(31))
    assert (task.status, task.finished_at, task.lease_owner) == (Status.EXPIRED, at(30), "worker-1")


async def test_task_whose_lease_was_lost_expires_at_its_deadline(store: Store) -> None:
    await store.lease("a", ttl_seconds=60)
    task = await store.get("a", at(100))
    assert (task.status, task.finished_at) == (Status.EXPIRED, at(60))


async def test_task_that_is_out_of_attempts_is_dead_not_expired(store: Store) -> None:
    await store.lease("a", ttl_seconds=10, max_attempts=1)
    assert await store.status("a", at(100)) is Status.DEAD


async def test_nacked_task_expires_while_it_waits(store: Store) -> None:
    settled(await store.nack(await store.lease("a", ttl_seconds=40), at(1), delay_seconds=60))
    assert await store.status("a", at(39)) is Status.SCHEDULED
    assert await store.status("a", at(40)) is Status.EXPIRED


@pytest.mark.parametrize("queue", [None, "work"])
async def test_expired_task_is_listed_though_nobody_moved_it(store: Store, queue: str | None) -> None:
    await store.enqueue("a", ttl_seconds=10)
    await store.enqueue("b", ttl_seconds=20, delay_seconds=60)
    task_filter = TaskFilter(Status.EXPIRED, queue=queue)
    assert ids((await store.list_finished(task_filter, now=at(10))).items) == ["a"]
    assert ids((await store.list_finished(task_filter, now=at(20))).items) == ["b", "a"]


async def test_expired_task_is_not_listed_as_live(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10)
    assert ids((await store.list_live(now=at(9))).items) == ["a"]
    assert (await store.list_live(now=at(10))).items == []


async def test_requeue_of_a_task_keeps_a_deadline_that_is_ahead(store: Store) -> None:
    await store.bury("a", ttl_seconds=100)
    await store.requeue("a", at(50))
    assert (await store.get("a", at(50))).expires_at == at(100)
    assert await store.status("a", at(100)) is Status.EXPIRED


async def test_requeue_of_a_task_drops_a_deadline_that_has_passed(store: Store) -> None:
    await store.bury("a", ttl_seconds=100)
    await store.requeue("a", at(100))
    task = await store.get("a", at(100))
    assert (task.status, task.expires_at, task.created_at) == (Status.READY, None, T0)


async def test_deadline_that_had_passed_counts_from_acceptance(store: Store) -> None:
    await store.enqueue("a", expires_at=at(-100 * 86400))
    task = await store.get("a", at(1))
    assert (task.status, task.finished_at) == (Status.EXPIRED, T0)


async def test_deadline_that_had_passed_counts_from_the_edit(store: Store) -> None:
    await store.enqueue("a")
    await store.edit("a", TaskEdit(expires_at=at(-100 * 86400)), at(5))
    assert (await store.get("a", at(6))).finished_at == at(5)
