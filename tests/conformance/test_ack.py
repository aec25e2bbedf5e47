"""Ack: the task is done, kept in the history, and a lost reply can be asked for again."""

import pytest

from app.domain.commands import TaskFilter
from app.domain.errors import LeaseMismatch, TaskNotLeased
from app.domain.task import ReservedTask, Status
from tests.conformance.steps import QUEUE, T0, Store, at, ids, json_payload, settled


async def test_acked_task_is_done(store: Store) -> None:
    leased = await store.lease("a")
    outcome = settled(await store.ack(leased, at(1)))
    assert (outcome.id, outcome.queue, outcome.status) == ("a", QUEUE, Status.DONE)
    assert await store.reserve_ids(at(100)) == []


async def test_done_task_is_kept_with_everything_it_had(store: Store) -> None:
    leased = await store.lease("a", payload=json_payload("[1]"), meta='{"a":1}', type="mail", topic="news", priority=3)
    settled(await store.ack(leased, at(9), result='{"b":2}'))
    task = await store.get("a", at(10))
    assert (task.status, task.result, task.finished_at, task.updated_at) == (Status.DONE, '{"b":2}', at(9), at(9))
    assert (task.payload, task.meta, task.type) == (json_payload("[1]"), '{"a":1}', "mail")
    assert (task.topic, task.priority, task.attempts, task.max_attempts) == ("news", 3, 1, 5)
    assert (task.created_at, task.first_leased_at, task.available_at) == (T0, T0, T0)
    assert (task.lease_owner, task.lease_until) == ("worker-1", None)


async def test_result_may_be_left_out(store: Store) -> None:
    await store.finish("a")
    assert (await store.get("a")).result is None


@pytest.mark.parametrize(
    "result",
    ["null", '""', "1e400", "12345678901234567890.10", r'"\u0000"', '"\U0001f600"', '{"b":1,"a":1}', " 1 ", "'\\%s:x"],
)
async def test_result_is_kept_to_the_letter(store: Store, result: str) -> None:
    settled(await store.ack(await store.lease("a"), result=result))
    assert (await store.get("a")).result == result


async def test_large_result_is_kept(store: Store) -> None:
    result = '"' + "\U0001f600" * (64 * 1024 - 1) + '"'
    settled(await store.ack(await store.lease("a"), result=result))
    assert (await store.get("a")).result == result


async def test_earlier_error_stays_on_a_done_task(store: Store) -> None:
    settled(await store.nack(await store.lease("a"), at(1), error="once", delay_seconds=0))
    settled(await store.ack(await store.reserve_one(at(2)), at(3)))
    task = await store.get("a", at(3))
    assert (task.status, task.last_error, task.last_error_at) == (Status.DONE, "once", at(1))


class TestRepeatedAck:
    """Repeating an ack with the same token is a success again, and changes nothing."""

    async def repeat(self, store: Store, leased: ReservedTask) -> None:
        before = await store.get("a", at(3600))
        outcome = settled(await store.ack(leased, at(3600), result='"other"'))
        assert (outcome.id, outcome.queue, outcome.status) == ("a", QUEUE, Status.DONE)
        assert await store.get("a", at(3600)) == before

    async def test_after_the_lease_would_have_ended(self, store: Store) -> None:
        await self.repeat(store, await store.finish("a"))
        assert len((await store.list_finished(TaskFilter(Status.DONE))).items) == 1
        assert len(await store.attempts("a")) == 1

    async def test_while_the_dedupe_key_is_held(self, store: Store) -> None:
        await self.repeat(store, await store.finish("a", dedupe_key="key", dedupe_seconds=7200))

    async def test_after_the_dedupe_window(self, store: Store) -> None:
        await self.repeat(store, await store.finish("a", dedupe_key="key", dedupe_seconds=60))

    async def test_after_a_new_task_took_the_id(self, store: Store) -> None:
        leased = await store.finish("a")
        await store.enqueue("a", at(1))
        await self.repeat(store, leased)

    async def test_while_a_new_task_of_that_id_is_leased(self, store: Store) -> None:
        leased = await store.finish("a")
        new = await store.lease("a", at(3599))
        await self.repeat(store, leased)
        settled(await store.ack(new, at(3601)))

    async def test_after_a_new_task_of_that_id_is_done_too(self, store: Store) -> None:
        leased = await store.finish("a")
        new = await store.finish("a", at(10))
        await self.repeat(store, leased)
        await self.repeat(store, new)

    async def test_wrong_token_is_still_wrong(self, store: Store) -> None:
        leased = await store.finish("a")
        new = await store.lease("a", at(1))
        other = ReservedTask(leased.task, "another token")
        assert type(await store.ack(other, at(2))) is LeaseMismatch
        assert await store.get("a", at(2)) == new.task


@pytest.mark.parametrize("dedupe_seconds", [0, 60])
async def test_nack_after_ack_finds_no_lease(store: Store, dedupe_seconds: float) -> None:
    leased = await store.finish("a", dedupe_key="key", dedupe_seconds=dedupe_seconds)
    assert type(await store.nack(leased, at(1))) is TaskNotLeased
    assert type(await store.release(leased, at(1))) is TaskNotLeased
    assert type(await store.extend(leased, at(1))) is TaskNotLeased
    assert type(await store.fail(leased, at(1))) is TaskNotLeased
    assert await store.status("a", at(1)) is Status.DONE


async def test_ack_after_fail_finds_no_lease(store: Store) -> None:
    leased = await store.bury("a")
    assert type(await store.ack(leased, at(1))) is TaskNotLeased
    assert await store.status("a", at(1)) is Status.DEAD


async def test_done_tasks_of_several_queues_are_told_with_their_queue(store: Store) -> None:
    leased = await store.lease("a", queue="other")
    assert settled(await store.ack(leased)).queue == "other"
    assert ids((await store.list_finished(TaskFilter(Status.DONE, queue="other"))).items) == ["a"]
