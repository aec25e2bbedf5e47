"""Exclusive queues: gone with what waits in them when their time passes, whether or not anybody notices."""

import pytest

from app.domain.commands import TaskFilter
from app.domain.errors import QueueExclusive, QueueNotExclusive, QueueNotFound, TaskNotFound
from app.domain.task import Status
from tests.conformance.steps import QUEUE, Store, at, ids, new_task, settled
from tests.conformance.topology_steps import Topology


@pytest.fixture
async def exclusive(topology: Topology) -> Topology:
    """A topology in which the queue `work` is exclusive, and ends a minute after T0."""
    await topology.put(exclusive=True, keep_alive_seconds=60)
    return topology


async def test_it_says_how_long_it_lives(topology: Topology) -> None:
    queue = await topology.put(exclusive=True, keep_alive_seconds=42)
    assert (queue.settings.exclusive, queue.keep_alive_until) == (True, at(42))
    assert (await topology.get()).keep_alive_until == at(42)


async def test_ordinary_queue_lives_for_ever(topology: Topology) -> None:
    assert (await topology.put()).keep_alive_until is None
    assert (await topology.get(now=at(1e8))).keep_alive_until is None


class TestAlive:
    """Until the last moment it is like any other queue."""

    async def test_it_works_until_the_last_moment(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        assert await exclusive.names(now=at(59.999999)) == [QUEUE]
        assert await store.status("first", at(59.999999)) is Status.READY
        assert (await exclusive.counts(now=at(59.999999))) == {"ready": 1}
        assert await store.reserve_ids(at(59.999999)) == ["first"]

    async def test_keep_alive_counts_from_now(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        assert await exclusive.keep_alive(30, at(50)) == at(80)
        assert (await exclusive.get(now=at(79))).keep_alive_until == at(80)
        assert await store.status("first", at(79)) is Status.READY
        with pytest.raises(QueueNotFound):
            await exclusive.get(now=at(80))

    async def test_keep_alive_may_shorten_its_life(self, exclusive: Topology) -> None:
        assert await exclusive.keep_alive(5, at(10)) == at(15)
        with pytest.raises(QueueNotFound):
            await exclusive.get(now=at(15))

    async def test_work_does_not_keep_it_alive(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first", at(50))
        await store.reserve_one(at(55))
        with pytest.raises(QueueNotFound):
            await exclusive.get(now=at(60))

    async def test_second_put_is_refused(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        with pytest.raises(QueueExclusive):
            await exclusive.put(now=at(59), exclusive=True, max_attempts=9)
        with pytest.raises(QueueExclusive):
            await exclusive.put(now=at(59), max_attempts=9)
        queue = await exclusive.get(now=at(59))
        assert (queue.settings.max_attempts, queue.keep_alive_until) == (5, at(60))
        assert await store.reserve_ids(at(59)) == ["first"]

    async def test_patch_changes_it_and_not_its_end(self, exclusive: Topology) -> None:
        queue = await exclusive.patch(now=at(30), max_attempts=9)
        assert (queue.settings.max_attempts, queue.keep_alive_until) == (9, at(60))

    async def test_pause_does_not_change_its_end(self, exclusive: Topology) -> None:
        assert (await exclusive.pause(now=at(30))).keep_alive_until == at(60)

    async def test_it_can_be_deleted(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        await exclusive.delete(now=at(1))
        with pytest.raises(TaskNotFound):
            await store.get("first", at(1))
        assert await exclusive.put_is_new(now=at(2))


class TestGone:
    """From the moment its time passes."""

    async def test_it_is_not_found(self, exclusive: Topology) -> None:
        with pytest.raises(QueueNotFound):
            await exclusive.get(now=at(60))
        with pytest.raises(QueueNotFound):
            await exclusive.patch(now=at(60), max_attempts=1)
        with pytest.raises(QueueNotFound):
            await exclusive.delete(now=at(60))
        with pytest.raises(QueueNotFound):
            await exclusive.keep_alive(60, at(60))

    async def test_it_is_not_listed(self, exclusive: Topology) -> None:
        await exclusive.put("stays")
        assert await exclusive.names(now=at(60)) == ["stays"]

    async def test_what_waited_is_gone(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("ready")
        await store.enqueue("later", delay_seconds=3600)
        for task_id in ("ready", "later"):
            with pytest.raises(TaskNotFound):
                await store.get(task_id, at(60))
        assert ids((await store.list_live(now=at(60))).items) == []
        assert await exclusive.counts(now=at(60)) == {}
        assert await store.reserve_ids(at(60)) == []

    async def test_nothing_comes_back_by_itself(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("later", delay_seconds=90)
        assert (await store.reserve(at(60))).next_available_at is None
        assert await store.reserve_ids(at(90)) == []

    async def test_what_waited_leaves_no_trace(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        for status in (Status.CANCELLED, Status.EXPIRED, Status.DONE, Status.DEAD):
            assert ids((await store.list_finished(TaskFilter(status), now=at(61))).items) == []

    async def test_what_waited_cannot_be_changed_or_cancelled(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        with pytest.raises(TaskNotFound):
            await store.cancel("first", at(60))

    async def test_ids_are_free_at_once(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        assert not (await store.enqueue("first", at(60))).existed
        assert await store.reserve_ids(at(60)) == ["first"]

    async def test_ids_are_free_in_other_queues_too(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first")
        assert not (await store.enqueue("first", at(60), queue="other")).existed

    async def test_dedupe_keys_are_free_at_once(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("old", dedupe_key="key")
        assert (await store.enqueue("too-early", at(59), dedupe_key="key")).existed
        assert not (await store.enqueue("new", at(60), dedupe_key="key")).existed

    async def test_key_that_a_done_task_held_is_free_too(self, store: Store, exclusive: Topology) -> None:
        await store.finish("old", dedupe_key="key", dedupe_seconds=3600)
        assert (await store.enqueue("too-early", at(59), dedupe_key="key")).existed
        assert not (await store.enqueue("new", at(60), dedupe_key="key")).existed

    async def test_enqueue_starts_an_undeclared_queue_that_is_empty(self, store: Store, exclusive: Topology) -> None:
        await exclusive.patch(paused=True, max_attempts=1)
        await store.enqueue("old")
        await store.enqueue("new", at(60), max_attempts=None)
        assert await exclusive.counts(now=at(60)) == {"ready": 1}
        assert (await store.get("new", at(60))).max_attempts == 5
        with pytest.raises(QueueNotFound):
            await exclusive.get(now=at(60))
        assert await store.reserve_ids(at(61)) == ["new"]

    async def test_publish_does_not_reach_it(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "stays")
        await topology.put("gone", topic="news", exclusive=True, keep_alive_seconds=60)
        before = await topology.publish("news", at(59))
        after = await topology.publish("news", at(60))
        assert [delivery.queue for delivery in before.deliveries] == ["gone", "stays"]
        assert [delivery.queue for delivery in after.deliveries] == ["stays"]

    async def test_its_topic_can_be_deleted_and_made_again(self, topology: Topology) -> None:
        await topology.subscribe("news")
        await topology.put("gone", topic="news", exclusive=True, keep_alive_seconds=60)
        await topology.delete_topic("news", at(61))
        await topology.put_topic("news", at(62))
        assert (await topology.publish("news", at(63))).deliveries == []

    async def test_new_one_starts_empty(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("old", dedupe_key="key")
        assert await exclusive.put_is_new(now=at(60), exclusive=True, keep_alive_seconds=10)
        assert (await exclusive.get(now=at(60))).keep_alive_until == at(70)
        assert await store.reserve_ids(at(60)) == []
        assert not (await store.enqueue("new", at(61), dedupe_key="key")).existed
        assert await exclusive.counts(now=at(61)) == {"ready": 1}

    async def test_new_one_has_none_of_the_old_settings(self, exclusive: Topology) -> None:
        await exclusive.patch(paused=True, max_attempts=9, concurrency_limit=1)
        queue = await exclusive.put(now=at(60))
        assert (queue.settings.paused, queue.settings.max_attempts, queue.settings.concurrency_limit) == (
            False,
            5,
            None,
        )

    async def test_new_one_has_a_rate_of_its_own(self, store: Store, topology: Topology) -> None:
        await topology.put(exclusive=True, keep_alive_seconds=60, rate_per_second=0.001)
        await store.lease(now=at(59))
        await topology.put(now=at(60), rate_per_second=0.001)
        await store.lease(now=at(60))

    async def test_pause_declares_a_new_one(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("old")
        queue = await exclusive.pause(now=at(60))
        assert (queue.settings.paused, queue.settings.exclusive, queue.keep_alive_until) == (True, False, None)
        assert await exclusive.counts(now=at(61)) == {}

    async def test_purge_finds_nothing(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("old")
        assert await exclusive.purge(now=at(60)) == 0

    async def test_history_and_dead_letters_stay(self, store: Store, exclusive: Topology) -> None:
        await store.finish("done")
        await store.bury("dead")
        assert await store.status("done", at(61)) is Status.DONE
        assert (await store.dead_letter("dead", at(61))).reason == "broken"
        assert await exclusive.counts(now=at(61)) == {"done": 1, "dead": 1}


class TestLeasedAtTheEnd:
    """What somebody works on can still be settled."""

    async def test_ack(self, store: Store, exclusive: Topology) -> None:
        leased = await store.lease("first", at(50))
        assert await store.status("first", at(61)) is Status.LEASED
        assert settled(await store.ack(leased, at(61))).status is Status.DONE
        assert await store.status("first", at(62)) is Status.DONE

    async def test_nack_and_release_have_nowhere_to_go_back_to(self, store: Store, exclusive: Topology) -> None:
        nacked, released = await store.lease("nacked", at(50)), await store.lease("released", at(50))
        assert settled(await store.nack(nacked, at(60), error="no")).status is Status.CANCELLED
        assert settled(await store.release(released, at(60))).status is Status.CANCELLED
        assert await store.status("nacked", at(61)) is Status.CANCELLED
        assert await store.status("released", at(61)) is Status.CANCELLED

    async def test_lost_lease(self, store: Store, exclusive: Topology) -> None:
        await store.lease("first", at(50))
        await store.lease("last", at(50), max_attempts=1)
        assert await store.status("first", at(80)) is Status.CANCELLED
        assert await store.status("last", at(80)) is Status.DEAD
        assert (await store.dead_letter("last", at(80))).reason == "lease expired"

    async def test_new_queue_does_not_get_it_back(self, store: Store, exclusive: Topology) -> None:
        leased = await store.lease("first", at(50))
        await exclusive.put(now=at(60))
        assert settled(await store.release(leased, at(61))).status is Status.CANCELLED
        assert await store.reserve_ids(at(62)) == []

    async def test_limit_of_the_new_queue_does_not_count_it(self, store: Store, exclusive: Topology) -> None:
        await store.lease("first", at(50))
        await exclusive.put(now=at(60), concurrency_limit=1)
        await store.enqueue_many(new_task("second"), now=at(61))
        assert await store.reserve_ids(at(61)) == ["second"]

    async def test_it_holds_its_id_while_it_runs(self, store: Store, exclusive: Topology) -> None:
        await store.lease("first", at(50))
        assert await store.status("first", at(61)) is Status.LEASED
        assert ids((await store.list_live(now=at(61))).items) == ["first"]


class TestWhatTimeDecidedBefore:
    """Nobody need have looked: what was over before the queue's end stays what it was."""

    async def test_expired_task_is_in_the_history(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first", ttl_seconds=10)
        task = await store.get("first", at(61))
        assert (task.status, task.finished_at) == (Status.EXPIRED, at(10))

    async def test_expired_task_is_listed(self, store: Store, exclusive: Topology) -> None:
        await store.enqueue("first", ttl_seconds=10)
        assert ids((await store.list_finished(TaskFilter(Status.EXPIRED), now=at(70))).items) == ["first"]

    async def test_new_queue_of_that_name_changes_nothing_of_it(self, store: Store, exclusive: Topology) -> None:
        await store.lease("came-back")
        await store.enqueue("expired", ttl_seconds=10)
        await store.enqueue(now=at(61))
        assert await store.status("expired", at(62)) is Status.EXPIRED
        with pytest.raises(TaskNotFound):
            await store.get("came-back", at(62))

    async def test_task_out_of_attempts_is_dead(self, store: Store, exclusive: Topology) -> None:
        await store.lease("first", max_attempts=1)
        assert await store.status("first", at(61)) is Status.DEAD

    async def test_task_that_came_back_waited(self, store: Store, exclusive: Topology) -> None:
        await store.lease("first")
        with pytest.raises(TaskNotFound):
            await store.get("first", at(61))


class TestOrdinary:
    async def test_keep_alive_is_refused(self, topology: Topology) -> None:
        await topology.put()
        with pytest.raises(QueueNotExclusive):
            await topology.keep_alive(60)

    async def test_it_can_be_made_exclusive_and_ordinary_again(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.enqueue("first")
        assert (await topology.put(now=at(1), exclusive=True, keep_alive_seconds=60)).keep_alive_until == at(61)
        assert (await topology.patch(now=at(2), exclusive=False)).keep_alive_until is None
        assert await store.reserve_ids(at(100)) == ["first"]
