"""Fail: the task is dead at once, whatever attempts it has left."""

from app.domain.commands import DeadLetterFilter
from app.domain.errors import TaskNotLeased
from app.domain.task import Status
from tests.conformance.steps import QUEUE, T0, Store, at, json_payload, settled


async def test_failed_task_is_dead(store: Store) -> None:
    leased = await store.lease("a")
    outcome = settled(await store.fail(leased, at(1), reason="no such user"))
    assert (outcome.id, outcome.queue, outcome.status, outcome.attempts) == ("a", QUEUE, Status.DEAD, 1)
    assert await store.reserve_ids(at(100)) == []


async def test_dead_task_is_kept_with_everything_it_had(store: Store) -> None:
    leased = await store.lease("a", payload=json_payload("[1]"), meta='{"a":1}', type="mail", topic="news", priority=3)
    settled(await store.fail(leased, at(9), reason="no such user"))
    task = await store.get("a", at(10))
    assert (task.status, task.finished_at, task.updated_at) == (Status.DEAD, at(9), at(9))
    assert (task.payload, task.meta, task.type) == (json_payload("[1]"), '{"a":1}', "mail")
    assert (task.topic, task.priority, task.attempts, task.max_attempts) == ("news", 3, 1, 5)
    assert (task.created_at, task.first_leased_at, task.lease_owner) == (T0, T0, "worker-1")
    assert (task.last_error, task.last_error_at, task.result) == ("no such user", at(9), None)


async def test_dead_letter_tells_reason_and_time(store: Store) -> None:
    settled(await store.fail(await store.lease("a"), at(9), reason="no such user"))
    letter = await store.dead_letter("a", at(10))
    assert (letter.reason, letter.failed_at) == ("no such user", at(9))
    assert letter.task == await store.get("a", at(10))


async def test_reason_of_eight_kibibytes_is_kept(store: Store) -> None:
    reason = "\U0001f4a5" * 2048
    settled(await store.fail(await store.lease("a"), reason=reason))
    assert (await store.dead_letter("a")).reason == reason
    assert (await store.attempts("a"))[0].reason == reason


async def test_repeated_fail_is_a_success_again(store: Store) -> None:
    leased = await store.bury("a", reason="first")
    before = await store.get("a")
    outcome = settled(await store.fail(leased, at(3600), reason="second"))
    assert (outcome.id, outcome.status) == ("a", Status.DEAD)
    assert await store.get("a") == before
    assert await store.dead_ids(DeadLetterFilter()) == ["a"]
    assert len(await store.attempts("a")) == 1


async def test_repeated_fail_is_a_success_after_requeue(store: Store) -> None:
    leased = await store.bury("a")
    await store.requeue("a", at(1))
    before = await store.get("a", at(2))
    assert settled(await store.fail(leased, at(2))).status is Status.DEAD
    assert await store.get("a", at(2)) == before
    assert await store.dead_ids(now=at(2)) == []


async def test_repeated_fail_is_a_success_while_another_worker_has_the_requeued_task(store: Store) -> None:
    leased = await store.bury("a")
    await store.requeue("a", at(1))
    second = await store.reserve_one(at(2))
    assert settled(await store.fail(leased, at(3))).status is Status.DEAD
    assert await store.get("a", at(3)) == second.task


async def test_repeated_fail_is_a_success_after_a_new_task_took_the_id(store: Store) -> None:
    leased = await store.bury("a")
    new = await store.lease("a", at(1))
    assert settled(await store.fail(leased, at(2))).status is Status.DEAD
    assert await store.get("a", at(2)) == new.task


async def test_other_settlements_after_fail_find_no_lease(store: Store) -> None:
    leased = await store.bury("a")
    assert type(await store.nack(leased, at(1))) is TaskNotLeased
    assert type(await store.release(leased, at(1))) is TaskNotLeased
    assert type(await store.extend(leased, at(1))) is TaskNotLeased


async def test_ack_after_fail_and_requeue_finds_no_lease(store: Store) -> None:
    leased = await store.bury("a")
    await store.requeue("a", at(1))
    assert type(await store.ack(leased, at(2))) is TaskNotLeased
    assert await store.status("a", at(2)) is Status.READY
