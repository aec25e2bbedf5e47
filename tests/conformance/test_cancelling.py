"""Cancelling: nobody wants the task any more; a leased one only when forced."""

import pytest

from app.domain.errors import TaskFinished, TaskLeased, TaskNotFound, TaskNotLeased
from app.domain.task import Status
from tests.conformance.steps import Store, at, json_payload, settled


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("delay_seconds", [0, 60])
async def test_waiting_task_is_cancelled(store: Store, force: bool, delay_seconds: float) -> None:
    await store.enqueue("a", queue="mail", delay_seconds=delay_seconds, payload=json_payload("[1]"))
    assert await store.cancel("a", at(1), force=force) == "mail"
    task = await store.get("a", at(1))
    assert (task.status, task.finished_at, task.payload) == (Status.CANCELLED, at(1), json_payload("[1]"))
    assert await store.reserve_ids(at(100), queues=["mail"]) == []


async def test_leased_task_is_refused(store: Store) -> None:
    leased = await store.lease("a")
    with pytest.raises(TaskLeased, match="'a'"):
        await store.cancel("a", at(1))
    assert await store.get("a", at(1)) == leased.task
    settled(await store.ack(leased, at(2)))


async def test_leased_task_is_cancelled_by_force(store: Store) -> None:
    await store.lease("a")
    await store.cancel("a", at(1), force=True)
    task = await store.get("a", at(1))
    assert (task.status, task.finished_at) == (Status.CANCELLED, at(1))
    assert (task.attempts, task.lease_owner, task.lease_until) == (1, "worker-1", None)
    assert await store.reserve_ids(at(100)) == []


async def test_token_is_void_after_forced_cancel(store: Store) -> None:
    leased = await store.lease("a")
    await store.cancel("a", at(1), force=True)
    assert type(await store.ack(leased, at(2))) is TaskNotLeased
    assert await store.status("a", at(2)) is Status.CANCELLED


async def test_task_whose_lease_ran_out_needs_no_force(store: Store) -> None:
    await store.lease("a")
    await store.cancel("a", at(30))
    assert await store.status("a", at(30)) is Status.CANCELLED


@pytest.mark.parametrize("force", [False, True])
async def test_finished_task_is_refused(store: Store, force: bool) -> None:
    await store.finish("done")
    await store.bury("dead")
    await store.enqueue("cancelled")
    await store.cancel("cancelled")
    await store.enqueue("expired", ttl_seconds=1)
    for status in ("done", "dead", "cancelled", "expired"):
        with pytest.raises(TaskFinished, match=f"is {status} already"):
            await store.cancel(status, at(1), force=force)
        assert await store.status(status, at(1)) == status


async def test_task_whose_last_lease_ran_out_is_refused(store: Store) -> None:
    await store.lease("a", max_attempts=1)
    with pytest.raises(TaskFinished, match="dead"):
        await store.cancel("a", at(30), force=True)
    assert (await store.dead_letter("a", at(30))).reason == "lease expired"


async def test_unknown_task_is_refused(store: Store, other_store: Store) -> None:
    await store.enqueue("a")
    with pytest.raises(TaskNotFound):
        await other_store.cancel("a", force=True)
    assert await store.status("a") is Status.READY
