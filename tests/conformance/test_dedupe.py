"""Dedupe keys: who holds one, for how long, and what the second producer hears."""

import pytest

from app.domain.errors import TaskExists
from app.domain.task import Enqueued, Status
from tests.conformance.steps import QUEUE, T0, Store, at, ids, json_payload, new_task, settled


async def test_second_enqueue_is_told_of_the_holder(store: Store) -> None:
    await store.enqueue("a", dedupe_key="key", delay_seconds=60)
    second = await store.enqueue("b", at(1), dedupe_key="key")
    assert second == Enqueued("a", QUEUE, Status.SCHEDULED, at(60), existed=True)


async def test_holder_is_left_as_it_was(store: Store) -> None:
    await store.enqueue("a", dedupe_key="key", priority=1, payload=json_payload("1"), meta='{"n":1}')
    before = await store.get("a")
    await store.enqueue("b", at(1), dedupe_key="key", priority=2, payload=json_payload("2"), meta='{"n":2}', type="t")
    assert await store.get("a") == before
    assert ids((await store.list_live()).items) == ["a"]


async def test_holder_that_is_leased_is_told_as_leased(store: Store) -> None:
    await store.lease("a", dedupe_key="key")
    assert (await store.enqueue("b", dedupe_key="key")).status is Status.LEASED


async def test_holder_that_became_due_is_told_as_ready(store: Store) -> None:
    await store.enqueue("a", dedupe_key="key", delay_seconds=60)
    assert (await store.enqueue("b", at(60), dedupe_key="key")).status is Status.READY


async def test_key_twice_in_a_batch_is_one_task(store: Store) -> None:
    first, other, second = await store.enqueue_many(
        new_task("a", dedupe_key="key"), new_task("b", dedupe_key="other"), new_task("c", dedupe_key="key")
    )
    assert (first.id, first.existed) == ("a", False)
    assert (other.id, other.existed) == ("b", False)
    assert (second.id, second.existed) == ("a", True)
    assert ids((await store.list_live()).items) == ["a", "b"]


async def test_batch_mixes_new_tasks_and_holders(store: Store) -> None:
    await store.enqueue("held", dedupe_key="key-2")
    outcomes = await store.enqueue_many(*(new_task(f"t{number}", dedupe_key=f"key-{number}") for number in range(5)))
    assert ids(outcomes) == ["t0", "t1", "held", "t3", "t4"]
    assert [outcome.existed for outcome in outcomes] == [False, False, True, False, False]


async def test_same_id_and_key_again_is_the_task_itself(store: Store) -> None:
    await store.enqueue("a", dedupe_key="key")
    assert await store.enqueue("a", dedupe_key="key") == Enqueued("a", QUEUE, Status.READY, T0, existed=True)


async def test_taken_id_refuses_a_new_key(store: Store) -> None:
    await store.enqueue("a", dedupe_key="key")
    with pytest.raises(TaskExists):
        await store.enqueue("a", dedupe_key="other key")


async def test_key_is_held_in_its_queue_only(store: Store) -> None:
    await store.enqueue("a", dedupe_key="key", queue="one")
    assert not (await store.enqueue("b", dedupe_key="key", queue="two")).existed


async def test_key_is_held_in_its_tenant_only(store: Store, other_store: Store) -> None:
    await store.enqueue("a", dedupe_key="key")
    assert not (await other_store.enqueue("b", dedupe_key="key")).existed


@pytest.mark.parametrize("key", ["Key", "KEY", "key ", " key", "kéy", "key\t", "\uff4bey"])
async def test_keys_that_differ_in_a_byte_are_different(store: Store, key: str) -> None:
    await store.enqueue("a", dedupe_key="key")
    assert not (await store.enqueue("b", dedupe_key=key)).existed
    assert (await store.enqueue("c", dedupe_key=key)).id == "b"
    assert (await store.get("b")).dedupe_key == key


@pytest.mark.parametrize("key", ["%", "_", "\\", "'\"", "x" * 128, "🔑" * 128, ":now", "{moves}"])
async def test_any_characters_make_a_key(store: Store, key: str) -> None:
    await store.enqueue("a", dedupe_key=key)
    assert (await store.enqueue("b", dedupe_key=key)).id == "a"


async def test_key_without_a_window_is_free_after_ack(store: Store) -> None:
    await store.finish("a", dedupe_key="key")
    assert not (await store.enqueue("b", dedupe_key="key")).existed


async def test_key_with_a_window_is_held_until_its_end(store: Store) -> None:
    leased = await store.lease("a", dedupe_key="key", dedupe_seconds=60)
    settled(await store.ack(leased, at(10)))
    held = await store.enqueue("b", at(69.999999), dedupe_key="key")
    assert held == Enqueued("a", QUEUE, Status.DONE, T0, existed=True)
    freed = await store.enqueue("b", at(70), dedupe_key="key")
    assert (freed.id, freed.existed) == ("b", False)


async def test_key_with_a_window_is_held_in_a_batch_too(store: Store) -> None:
    await store.finish("a", dedupe_key="key", dedupe_seconds=60)
    outcomes = await store.enqueue_many(new_task("b", dedupe_key="key"), new_task("c"), now=at(1))
    assert ids(outcomes) == ["a", "c"]


async def test_window_of_a_fraction_of_a_second_is_exact(store: Store) -> None:
    await store.finish("a", dedupe_key="key", dedupe_seconds=0.25)
    assert (await store.enqueue("b", at(0.249999), dedupe_key="key")).existed
    assert not (await store.enqueue("b", at(0.25), dedupe_key="key")).existed


async def test_done_task_that_holds_its_key_is_done_for_everybody(store: Store) -> None:
    leased = await store.lease("a", dedupe_key="key", dedupe_seconds=60, payload=json_payload("[1]"), meta='{"m":1}')
    settled(await store.ack(leased, at(1), result='"ok"'))
    task = await store.get("a", at(2))
    assert (task.status, task.payload, task.meta) == (Status.DONE, json_payload("[1]"), '{"m":1}')
    assert (task.dedupe_key, task.result, task.finished_at) == ("key", '"ok"', at(1))
    assert (await store.list_live(now=at(2))).items == []
    assert await store.reserve_ids(at(2)) == []


@pytest.mark.parametrize("dedupe_seconds", [0, 3600])
class TestKeyIsFreeAtOnce:
    """However long the window that the task was enqueued with: only a done task has one."""

    async def test_when_the_task_failed(self, store: Store, dedupe_seconds: float) -> None:
        await store.bury("a", dedupe_key="key", dedupe_seconds=dedupe_seconds)
        assert not (await store.enqueue("b", dedupe_key="key")).existed

    async def test_when_the_task_was_cancelled(self, store: Store, dedupe_seconds: float) -> None:
        await store.enqueue("a", dedupe_key="key", dedupe_seconds=dedupe_seconds)
        await store.cancel("a")
        assert not (await store.enqueue("b", dedupe_key="key")).existed

    async def test_when_the_task_was_cancelled_while_leased(self, store: Store, dedupe_seconds: float) -> None:
        await store.lease("a", dedupe_key="key", dedupe_seconds=dedupe_seconds)
        await store.cancel("a", force=True)
        assert not (await store.enqueue("b", dedupe_key="key")).existed

    async def test_when_the_task_expired_and_nobody_moved_it(self, store: Store, dedupe_seconds: float) -> None:
        await store.enqueue("a", dedupe_key="key", dedupe_seconds=dedupe_seconds, ttl_seconds=10)
        assert (await store.enqueue("b", at(9.999999), dedupe_key="key")).existed
        assert not (await store.enqueue("b", at(10), dedupe_key="key")).existed
        assert await store.status("a", at(10)) is Status.EXPIRED

    async def test_when_the_task_expired_while_scheduled(self, store: Store, dedupe_seconds: float) -> None:
        await store.enqueue("a", dedupe_key="key", dedupe_seconds=dedupe_seconds, ttl_seconds=10, delay_seconds=60)
        assert not (await store.enqueue("b", at(10), dedupe_key="key")).existed

    async def test_when_the_last_lease_ran_out_and_nobody_moved_it(self, store: Store, dedupe_seconds: float) -> None:
        await store.lease("a", dedupe_key="key", dedupe_seconds=dedupe_seconds, max_attempts=1)
        assert (await store.enqueue("b", at(29.999999), dedupe_key="key")).existed
        assert not (await store.enqueue("b", at(30), dedupe_key="key")).existed
        assert await store.status("a", at(30)) is Status.DEAD

    async def test_when_the_attempts_were_used_up_by_nack(self, store: Store, dedupe_seconds: float) -> None:
        leased = await store.lease("a", dedupe_key="key", dedupe_seconds=dedupe_seconds, max_attempts=1)
        settled(await store.nack(leased))
        assert not (await store.enqueue("b", dedupe_key="key")).existed


async def test_key_is_held_while_a_lost_lease_may_be_retried(store: Store) -> None:
    await store.lease("a", dedupe_key="key", max_attempts=2)
    held = await store.enqueue("b", at(31), dedupe_key="key")
    assert (held.id, held.status, held.existed) == ("a", Status.READY, True)


async def test_key_is_held_by_an_expired_task_while_its_lease_runs(store: Store) -> None:
    await store.lease("a", dedupe_key="key", ttl_seconds=10)
    assert (await store.enqueue("b", at(20), dedupe_key="key")).existed


async def test_key_is_held_after_nack_and_release(store: Store) -> None:
    settled(await store.nack(await store.lease("a", dedupe_key="key"), delay_seconds=0))
    settled(await store.release(await store.reserve_one()))
    assert (await store.enqueue("b", dedupe_key="key")).id == "a"


async def test_refused_batch_leaves_the_keys_free(store: Store) -> None:
    await store.enqueue("taken")
    with pytest.raises(TaskExists):
        await store.enqueue_many(new_task("a", dedupe_key="key"), new_task("taken"))
    assert not (await store.enqueue("b", dedupe_key="key")).existed


async def test_tasks_without_a_key_are_all_accepted(store: Store) -> None:
    outcomes = await store.enqueue_many(new_task(), new_task(), new_task())
    assert [outcome.existed for outcome in outcomes] == [False] * 3
