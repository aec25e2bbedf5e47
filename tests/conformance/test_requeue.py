"""Requeue: dead tasks go back to their queue as they were, one by one or all that a filter finds."""

import pytest

from app.domain.commands import DeadLetterFilter, Requeued
from app.domain.errors import DedupeConflict, TaskExists, TaskNotFound
from app.domain.task import ReservedTask, Status
from tests.conformance.steps import QUEUE, T0, Store, at, fail_item, ids, json_payload, new_task, settled


class TestOne:
    """The single form sends the newest dead letter of a task back, or says why not."""

    async def test_task_is_ready_again(self, store: Store) -> None:
        await store.bury("a", queue="mail")
        assert await store.requeue("a", at(9)) == Requeued(1, 0, 0, {"mail": 1})
        task = await store.get("a", at(9))
        assert (task.status, task.attempts, task.available_at, task.updated_at) == (Status.READY, 0, at(9), at(9))
        assert await store.reserve_ids(at(9), queues=["mail"]) == ["a"]
        assert await store.dead_ids(now=at(9)) == []

    async def test_task_keeps_what_it_is(self, store: Store) -> None:
        await store.bury(
            "a",
            payload=json_payload("[1]"),
            meta='{"a":1}',
            priority=3,
            type="mail",
            topic="news",
            dedupe_key="key",
            timeout_seconds=5,
            publish_id="p",
            max_attempts=7,
        )
        await store.requeue("a", at(9))
        task = await store.get("a", at(9))
        assert (task.payload, task.meta, task.priority) == (json_payload("[1]"), '{"a":1}', 3)
        assert (task.type, task.topic, task.dedupe_key, task.publish_id) == ("mail", "news", "key", "p")
        assert (task.timeout_seconds, task.max_attempts) == (5, 7)
        assert (task.created_at, task.first_leased_at, task.last_error) == (T0, T0, "broken")
        assert (task.lease_owner, task.lease_until, task.finished_at) == (None, None, None)

    async def test_task_has_all_its_attempts_again(self, store: Store) -> None:
        settled(await store.nack(await store.lease("a", max_attempts=1)))
        await store.requeue("a")
        leased = await store.reserve_one()
        assert (leased.task.attempts, leased.task.max_attempts) == (1, 1)

    async def test_without_reset_it_has_one_attempt_more_than_it_used(self, store: Store) -> None:
        settled(await store.nack(await store.lease("a", max_attempts=5), delay_seconds=0))
        settled(await store.fail(await store.reserve_one()))
        await store.requeue("a", reset_attempts=False)
        task = await store.get("a")
        assert (task.attempts, task.max_attempts) == (2, 3)
        assert settled(await store.nack(await store.reserve_one())).status is Status.DEAD

    async def test_without_reset_unlimited_attempts_stay_unlimited(self, store: Store) -> None:
        await store.bury("a", max_attempts=0)
        await store.requeue("a", reset_attempts=False)
        task = await store.get("a")
        assert (task.attempts, task.max_attempts) == (1, 0)

    async def test_dedupe_key_is_held_again(self, store: Store) -> None:
        await store.bury("a", dedupe_key="key", dedupe_seconds=60)
        await store.requeue("a", at(1))
        assert (await store.enqueue("b", at(1), dedupe_key="key")).id == "a"
        settled(await store.ack(await store.reserve_one(at(2)), at(2)))
        assert (await store.enqueue("b", at(61), dedupe_key="key")).existed
        assert not (await store.enqueue("b", at(62), dedupe_key="key")).existed

    async def test_delay(self, store: Store) -> None:
        await store.bury("a")
        await store.requeue("a", at(1), delay_seconds=60)
        task = await store.get("a", at(1))
        assert (task.status, task.available_at) == (Status.SCHEDULED, at(61))
        assert await store.reserve_ids(at(61)) == ["a"]

    async def test_deadline_ahead_is_kept_and_a_passed_one_dropped(self, store: Store) -> None:
        await store.bury("ahead", ttl_seconds=60)
        await store.bury("passed", ttl_seconds=30)
        await store.requeue("ahead", at(30))
        await store.requeue("passed", at(30))
        assert ((await store.get("ahead", at(30))).expires_at, (await store.get("passed", at(30))).expires_at) == (
            at(60),
            None,
        )

    async def test_size_still_counts_for_a_reply(self, store: Store) -> None:
        await store.bury("a", payload=json_payload('"' + "x" * 1000 + '"'))
        await store.requeue("a")
        await store.enqueue("b", at(1))
        assert await store.reserve_ids(at(1), max_bytes=900) == ["a"]

    async def test_taken_id(self, store: Store) -> None:
        await store.bury("a", reason="dead one")
        await store.enqueue("a", at(1))
        with pytest.raises(TaskExists, match="'a'"):
            await store.requeue("a", at(1))
        assert (await store.dead_letter("a", at(1))).reason == "dead one"

    async def test_taken_key(self, store: Store) -> None:
        await store.bury("a", dedupe_key="key")
        await store.enqueue("b", at(1), dedupe_key="key")
        with pytest.raises(DedupeConflict, match="'a'"):
            await store.requeue("a", at(1))
        assert await store.status("a", at(1)) is Status.DEAD

    async def test_key_held_by_a_done_task(self, store: Store) -> None:
        await store.bury("a", dedupe_key="key")
        await store.finish("b", at(1), dedupe_key="key", dedupe_seconds=60)
        with pytest.raises(DedupeConflict):
            await store.requeue("a", at(60.999999))
        assert (await store.requeue("a", at(61))).requeued == 1

    async def test_id_and_key_of_a_task_that_expired_are_free(self, store: Store) -> None:
        await store.bury("a", dedupe_key="key")
        await store.enqueue("a", at(1), dedupe_key="key", ttl_seconds=10)
        assert (await store.requeue("a", at(11))).requeued == 1

    async def test_newest_of_two_with_one_id(self, store: Store) -> None:
        await store.bury("a", at(1), reason="first")
        await store.bury("a", at(2), reason="second")
        assert await store.requeue("a", at(3)) == Requeued(1, 0, 1, {QUEUE: 1})
        assert (await store.get("a", at(3))).last_error == "second"
        with pytest.raises(TaskExists):
            await store.requeue("a", at(3))

    async def test_dry_run_changes_nothing_and_tells_the_same(self, store: Store) -> None:
        await store.bury("a")
        told = await store.requeue("a", at(1), dry_run=True)
        assert await store.status("a", at(1)) is Status.DEAD
        assert await store.requeue("a", at(1)) == told

    async def test_dry_run_tells_of_a_conflict(self, store: Store) -> None:
        await store.bury("a")
        await store.enqueue("a", at(1))
        with pytest.raises(TaskExists):
            await store.requeue("a", at(1), dry_run=True)

    async def test_unknown_letter(self, store: Store, other_store: Store) -> None:
        await store.bury("a")
        await store.enqueue("live")
        for asking, name in [(store, "unknown"), (store, "live"), (other_store, "a")]:
            with pytest.raises(TaskNotFound):
                await asking.requeue(name)


class TestMany:
    """The bulk form sends back what it can, oldest first, and passes over what it cannot."""

    async def test_all_of_the_tenant(self, store: Store, other_store: Store) -> None:
        for name in ("a", "b", "c"):
            await store.bury(name, queue="one" if name == "a" else "two")
        await other_store.bury("a")
        assert await store.requeue_many(now=at(1)) == Requeued(3, 0, 0, {"one": 1, "two": 2})
        assert ids((await store.list_live(now=at(1))).items) == ["a", "b", "c"]
        assert await other_store.dead_ids() == ["a"]

    async def test_nothing_to_do(self, store: Store) -> None:
        assert await store.requeue_many() == Requeued(0, 0, 0, {})

    async def test_limit_takes_the_oldest_and_tells_what_remains(self, store: Store) -> None:
        for name in "abcde":
            await store.bury(name)
        assert await store.requeue_many(limit=2) == Requeued(2, 0, 3, {QUEUE: 2})
        assert ids((await store.list_live()).items) == ["a", "b"]

    async def test_remaining_counts_only_what_the_filter_finds(self, store: Store) -> None:
        for name in "abc":
            await store.bury(name, type="mail")
        await store.bury("other")
        assert (await store.requeue_many(DeadLetterFilter(type="mail"), limit=1)).remaining == 2

    async def test_taken_ids_and_keys_are_skipped(self, store: Store) -> None:
        await store.bury("id-taken")
        await store.bury("key-taken", dedupe_key="key")
        await store.bury("free")
        await store.enqueue("id-taken", at(1))
        await store.enqueue("holder", at(1), dedupe_key="key")
        assert await store.requeue_many(now=at(2)) == Requeued(1, 2, 2, {QUEUE: 1})
        assert sorted(await store.dead_ids(now=at(2))) == ["id-taken", "key-taken"]

    async def test_skipped_letters_do_not_count_for_the_limit(self, store: Store) -> None:
        for name in ("taken", "a", "b", "c"):
            await store.bury(name)
        await store.enqueue("taken", at(1))
        requeued = await store.requeue_many(now=at(2), limit=2)
        assert (requeued.requeued, requeued.remaining) == (2, 2)
        assert await store.dead_ids(now=at(2)) == ["c", "taken"]

    async def test_only_the_first_of_two_with_one_id(self, store: Store) -> None:
        await store.bury("a", at(1), reason="first")
        await store.bury("a", at(2), reason="second")
        assert await store.requeue_many(now=at(3)) == Requeued(1, 1, 1, {QUEUE: 1})
        assert (await store.get("a", at(3))).last_error == "first"

    async def test_only_the_first_of_two_with_one_key(self, store: Store) -> None:
        await store.bury("a", dedupe_key="key")
        await store.bury("b", dedupe_key="key")
        assert await store.requeue_many() == Requeued(1, 1, 1, {QUEUE: 1})

    async def test_reset_attempts_and_delay(self, store: Store) -> None:
        await store.bury("a")
        await store.requeue_many(now=at(1), reset_attempts=False, delay_seconds=5)
        task = await store.get("a", at(1))
        assert (task.attempts, task.max_attempts, task.status, task.available_at) == (1, 2, Status.SCHEDULED, at(6))

    async def test_dry_run_changes_nothing_and_tells_the_same(self, store: Store) -> None:
        for name in "abcd":
            await store.bury(name)
        await store.enqueue("b", at(1))
        before = await store.list_dead_letters(now=at(2))
        told = await store.requeue_many(now=at(2), limit=2, dry_run=True)
        assert await store.list_dead_letters(now=at(2)) == before
        assert await store.requeue_many(now=at(2), limit=2) == told

    async def test_more_than_one_batch(self, store: Store) -> None:
        buried = await store.bury_many(1200)
        assert await store.requeue_many(limit=1100) == Requeued(1100, 0, 100, {QUEUE: 1100})
        assert await store.requeue_many() == Requeued(100, 0, 0, {QUEUE: 100})
        assert ids((await store.list_live(limit=2000)).items) == buried

    async def test_dry_run_of_more_than_one_batch_tells_the_same(self, store: Store) -> None:
        await self.one_id_in_two_batches(store)
        told = await store.requeue_many(now=at(9), dry_run=True)
        assert (await store.get("twice", at(9))).status is Status.DEAD
        assert await store.requeue_many(now=at(9)) == told

    async def test_one_id_in_two_batches_is_requeued_once(self, store: Store) -> None:
        await self.one_id_in_two_batches(store)
        assert await store.requeue_many(now=at(9)) == Requeued(601, 1, 1, {QUEUE: 601})

    async def one_id_in_two_batches(self, store: Store) -> None:
        await store.bury("twice", at(1))
        await store.bury_many(600, at(2))
        await store.bury("twice", at(3))

    async def test_task_that_dies_again_is_not_taken_for_one_that_was_there(self, store: Store) -> None:
        await store.bury_many(3)
        await store.requeue_many()
        leased: list[ReservedTask] = list((await store.reserve(limit=3)).tasks)
        await store.repository.fail_many(store.tenant, [fail_item(task) for task in leased], T0)
        assert (await store.requeue_many()).requeued == 3


async def test_requeued_tasks_stand_behind_those_accepted_before(store: Store) -> None:
    await store.bury("dead")
    await store.enqueue_many(new_task("one"), new_task("two"))
    await store.requeue("dead", at(1))
    assert await store.reserve_ids(at(1)) == ["one", "two", "dead"]
