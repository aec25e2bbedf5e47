"""Editing: a task that waits may be changed, and what the change makes of it is made of it at once."""

import pytest

from app.domain.commands import TaskEdit
from app.domain.errors import TaskFinished, TaskLeased, TaskNotFound
from app.domain.task import Status
from tests.conformance.steps import T0, Store, at, settled


async def test_priority(store: Store) -> None:
    await store.enqueue("a")
    await store.enqueue("b")
    assert (await store.edit("b", TaskEdit(priority=21), at(1))).priority == 21
    assert await store.reserve_ids(at(1)) == ["b", "a"]


@pytest.mark.parametrize("priority", [0, -1, 2**31 - 1, -(2**31)])
async def test_any_priority(store: Store, priority: int) -> None:
    await store.enqueue("a")
    assert (await store.edit("a", TaskEdit(priority=priority))).priority == priority


async def test_available_at_that_is_ahead_schedules_the_task(store: Store) -> None:
    await store.enqueue("a")
    task = await store.edit("a", TaskEdit(available_at=at(60)), at(1))
    assert (task.status, task.available_at, task.updated_at) == (Status.SCHEDULED, at(60), at(1))
    assert await store.reserve_ids(at(59)) == []
    assert await store.reserve_ids(at(60)) == ["a"]


@pytest.mark.parametrize("seconds", [1, 0, -60])
async def test_available_at_that_is_not_ahead_makes_the_task_ready(store: Store, seconds: float) -> None:
    await store.enqueue("a", delay_seconds=60)
    task = await store.edit("a", TaskEdit(available_at=at(seconds)), at(1))
    assert (task.status, task.available_at) == (Status.READY, at(seconds))
    assert await store.reserve_ids(at(1)) == ["a"]


async def test_task_that_became_due_stays_ready(store: Store) -> None:
    await store.enqueue("a", delay_seconds=60)
    assert (await store.edit("a", TaskEdit(priority=1), at(60))).status is Status.READY


async def test_max_attempts(store: Store) -> None:
    await store.enqueue("a")
    assert (await store.edit("a", TaskEdit(max_attempts=1))).max_attempts == 1
    settled(await store.nack(await store.reserve_one()))
    assert await store.status("a") is Status.DEAD


async def test_zero_max_attempts_are_unlimited(store: Store) -> None:
    settled(await store.nack(await store.lease("a", max_attempts=2), delay_seconds=0))
    assert (await store.edit("a", TaskEdit(max_attempts=0))).max_attempts == 0
    settled(await store.nack(await store.reserve_one(), delay_seconds=0))
    assert await store.status("a") is Status.READY


async def test_max_attempts_that_are_used_up_already_make_the_task_dead(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), error="timeout", delay_seconds=0))
    task = await store.edit("a", TaskEdit(max_attempts=1), at(1))
    assert (task.status, task.finished_at, task.last_error) == (Status.DEAD, at(1), "timeout")
    assert (await store.dead_letter("a", at(1))).reason == "attempts used up"


async def test_deadline(store: Store) -> None:
    await store.enqueue("a")
    assert (await store.edit("a", TaskEdit(expires_at=at(10)))).expires_at == at(10)
    assert await store.status("a", at(10)) is Status.EXPIRED


async def test_later_deadline(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10)
    await store.edit("a", TaskEdit(expires_at=at(20)), at(9))
    assert await store.status("a", at(19)) is Status.READY


async def test_deadline_that_has_passed_makes_the_task_expired(store: Store) -> None:
    await store.enqueue("a")
    assert (await store.edit("a", TaskEdit(expires_at=at(1)), at(1))).status is Status.EXPIRED
    assert await store.reserve_ids(at(1)) == []


async def test_out_of_attempts_and_past_its_deadline_is_dead(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), delay_seconds=0))
    edited = await store.edit("a", TaskEdit(max_attempts=1, expires_at=at(1)), at(1))
    assert edited.status is Status.DEAD


async def test_several_fields_at_once(store: Store) -> None:
    await store.enqueue("a")
    edit = TaskEdit(priority=1, available_at=at(5), max_attempts=2, expires_at=at(50))
    task = await store.edit("a", edit)
    assert (task.priority, task.available_at, task.max_attempts, task.expires_at) == (1, at(5), 2, at(50))


async def test_what_is_not_given_stays(store: Store) -> None:
    await store.enqueue("a", priority=1, max_attempts=2, ttl_seconds=60, delay_seconds=30, dedupe_key="key")
    before = await store.get("a")
    assert await store.edit("a", TaskEdit()) == before


async def test_edited_task_is_what_the_next_look_shows(store: Store) -> None:
    await store.enqueue("a")
    assert await store.edit("a", TaskEdit(priority=1), at(1)) == await store.get("a", at(1))


async def test_leased_task_is_refused(store: Store) -> None:
    leased = await store.lease("a")
    with pytest.raises(TaskLeased, match="'a'"):
        await store.edit("a", TaskEdit(priority=1), at(1))
    assert await store.get("a", at(1)) == leased.task


async def test_task_whose_lease_ran_out_may_be_edited(store: Store) -> None:
    await store.lease("a")
    task = await store.edit("a", TaskEdit(priority=1), at(30))
    assert (task.status, task.priority, task.attempts, task.available_at) == (Status.READY, 1, 1, T0)


@pytest.mark.parametrize("status", [Status.DONE, Status.DEAD, Status.EXPIRED, Status.CANCELLED])
async def test_finished_task_is_refused(store: Store, status: Status) -> None:
    await make_finished(store, status)
    before = await store.get("a", at(1))
    with pytest.raises(TaskFinished, match=f"'a' is {status}"):
        await store.edit("a", TaskEdit(priority=1), at(1))
    assert await store.get("a", at(1)) == before


async def test_done_task_that_holds_its_key_is_refused(store: Store) -> None:
    await store.finish("a", dedupe_key="key", dedupe_seconds=60)
    with pytest.raises(TaskFinished):
        await store.edit("a", TaskEdit(priority=1), at(1))


async def test_task_that_expired_and_nobody_moved_is_refused(store: Store) -> None:
    await store.enqueue("a", ttl_seconds=10)
    with pytest.raises(TaskFinished):
        await store.edit("a", TaskEdit(expires_at=at(100)), at(10))


async def test_task_whose_last_lease_ran_out_is_refused(store: Store) -> None:
    await store.lease("a", max_attempts=1)
    with pytest.raises(TaskFinished, match="dead"):
        await store.edit("a", TaskEdit(max_attempts=5), at(30))


async def test_unknown_task_is_refused(store: Store, other_store: Store) -> None:
    await store.enqueue("a")
    with pytest.raises(TaskNotFound):
        await other_store.edit("a", TaskEdit(priority=1))


async def make_finished(store: Store, status: Status) -> None:
    if status is Status.DONE:
        await store.finish("a")
    elif status is Status.DEAD:
        await store.bury("a")
    else:
        await store.enqueue("a", ttl_seconds=1)
    if status is Status.CANCELLED:
        await store.cancel("a")
