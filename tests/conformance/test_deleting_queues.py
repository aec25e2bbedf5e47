"""Deleting a queue: what waited in it is gone, what somebody works on can still be settled, what is over stays."""

import pytest

from app.domain.commands import TaskFilter
from app.domain.errors import QueueNotFound, TaskNotFound
from app.domain.task import Status
from tests.conformance.steps import QUEUE, Store, at, ids, new_task, settled
from tests.conformance.topology_steps import Topology


class TestDelete:
    """One row goes, and what waited in the queue with it."""

    async def test_queue_is_not_found(self, topology: Topology) -> None:
        await topology.put()
        await topology.delete()
        with pytest.raises(QueueNotFound):
            await topology.get()
        with pytest.raises(QueueNotFound):
            await topology.delete()
        with pytest.raises(QueueNotFound):
            await topology.patch(max_attempts=1)
        with pytest.raises(QueueNotFound):
            await topology.keep_alive(60)
        assert await topology.names() == []

    async def test_what_waited_is_gone(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.enqueue("ready")
        await store.enqueue("later", delay_seconds=60)
        await topology.delete(now=at(1))
        for task_id in ("ready", "later"):
            with pytest.raises(TaskNotFound):
                await store.get(task_id, at(1))
            with pytest.raises(TaskNotFound):
                await store.attempts(task_id, at(1))
            with pytest.raises(TaskNotFound):
                await store.cancel(task_id, at(1))
            with pytest.raises(TaskNotFound):
                await topology.explain(task_id, at(1))
        assert ids((await store.list_live(now=at(1))).items) == []
        assert await store.reserve_ids(at(61)) == []
        for status in (Status.CANCELLED, Status.EXPIRED, Status.DONE, Status.DEAD):
            assert ids((await store.list_finished(TaskFilter(status), now=at(61))).items) == []

    async def test_reserve_says_nothing_of_what_was_scheduled(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.enqueue("later", delay_seconds=60)
        await topology.delete()
        assert (await store.reserve()).next_available_at is None

    async def test_ids_and_keys_are_free_at_once(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.enqueue("first", dedupe_key="key")
        await topology.delete()
        again = await store.enqueue("first", dedupe_key="key")
        assert (again.id, again.existed) == ("first", False)
        assert await store.reserve_ids() == ["first"]

    async def test_id_is_free_for_another_queue_and_in_a_batch(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.enqueue_many(new_task("a"), new_task("b"))
        await topology.delete()
        outcomes = await store.enqueue_many(new_task("b", queue="other"), new_task("a"), new_task("c"))
        assert [outcome.existed for outcome in outcomes] == [False, False, False]

    async def test_id_is_free_for_a_dead_letter(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.bury("first", queue="other")
        await store.enqueue("first")
        await topology.delete()
        assert (await store.requeue("first")).requeued == 1
        assert await store.reserve_ids(queues=["other"]) == ["first"]

    async def test_key_that_a_done_task_held_is_free(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.finish("first", dedupe_key="key", dedupe_seconds=3600)
        await topology.delete()
        assert not (await store.enqueue("second", dedupe_key="key")).existed
        assert await store.status("first") is Status.DONE

    async def test_new_queue_of_the_same_name_starts_empty(self, store: Store, topology: Topology) -> None:
        await topology.put(paused=True)
        await store.enqueue("old")
        await topology.delete()
        assert await topology.put_is_new()
        assert await topology.counts() == {}
        assert await store.reserve_ids() == []
        await store.enqueue("new")
        assert await store.reserve_ids() == ["new"]

    async def test_undeclared_queue_of_the_same_name_starts_empty(self, store: Store, topology: Topology) -> None:
        await topology.put(max_attempts=1, paused=True)
        await store.enqueue("old")
        await topology.delete()
        await store.enqueue("new", max_attempts=None)
        assert await topology.counts() == {"ready": 1}
        assert (await store.get("new")).max_attempts == 5
        assert await store.reserve_ids() == ["new"]
        with pytest.raises(QueueNotFound):
            await topology.get()

    async def test_many_lives_of_one_name(self, store: Store, topology: Topology) -> None:
        for life in range(5):
            await topology.put()
            await store.enqueue("same", payload=new_task().payload, priority=life)
            await topology.delete()
        await store.enqueue("same", priority=99)
        assert (await store.reserve_one()).task.priority == 99

    async def test_history_and_dead_letters_stay(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.finish("done")
        await store.bury("dead")
        await store.enqueue("cancelled")
        await store.cancel("cancelled")
        await topology.delete()
        assert await store.status("done") is Status.DONE
        assert await store.status("cancelled") is Status.CANCELLED
        assert await store.dead_ids() == ["dead"]
        assert await topology.counts() == {"done": 1, "dead": 1, "cancelled": 1}
        assert len(await store.attempts("done")) == 1

    async def test_dead_letter_goes_back_to_an_undeclared_queue(self, store: Store, topology: Topology) -> None:
        await topology.put(paused=True)
        await topology.resume()
        await store.bury("dead")
        await topology.delete()
        assert (await store.requeue("dead")).requeued == 1
        assert await store.reserve_ids() == ["dead"]

    async def test_other_queues_are_left_alone(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await topology.put("other")
        await store.enqueue("first")
        await store.enqueue("second", queue="other")
        await topology.delete()
        assert await store.reserve_ids(queues=[QUEUE, "other"]) == ["second"]


class TestLeasedWhenDeleted:
    """What somebody works on can still be settled; what would come back has nowhere to wait."""

    async def test_ack(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first")
        await topology.delete()
        assert await store.status("first") is Status.LEASED
        assert settled(await store.ack(leased, at(1), result="1")).status is Status.DONE
        task = await store.get("first", at(2))
        assert (task.status, task.result, task.finished_at) == (Status.DONE, "1", at(1))
        # The reply may have been lost.
        assert settled(await store.ack(leased, at(3))).status is Status.DONE

    async def test_extend(self, store: Store, topology: Topology) -> None:
        await topology.put(max_lease_seconds=1000)
        leased = await store.lease("first")
        await topology.delete()
        await store.extend(leased, at(1), 500)
        assert (await store.get("first", at(400))).lease_until == at(501)

    async def test_fail(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first")
        await topology.delete()
        assert settled(await store.fail(leased, at(1))).status is Status.DEAD
        assert await store.dead_ids() == ["first"]

    async def test_nack(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first")
        await topology.delete()
        assert settled(await store.nack(leased, at(1), error="no")).status is Status.CANCELLED
        task = await store.get("first", at(2))
        assert (task.status, task.last_error, task.finished_at) == (Status.CANCELLED, "no", at(1))

    async def test_nack_out_of_attempts(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first", max_attempts=1)
        await topology.delete()
        assert settled(await store.nack(leased, at(1), error="no")).status is Status.DEAD
        assert (await store.dead_letter("first")).reason == "no"

    async def test_release(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first")
        await topology.delete()
        assert settled(await store.release(leased, at(1))).status is Status.CANCELLED

    async def test_lost_lease(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.lease("first")
        await store.lease("last", max_attempts=1)
        await topology.delete(now=at(1))
        first = await store.get("first", at(31))
        assert (first.status, first.finished_at) == (Status.CANCELLED, at(30))
        assert await store.status("last", at(31)) is Status.DEAD

    async def test_lost_leases_are_in_the_lists(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.lease("first")
        await store.lease("last", max_attempts=1)
        await topology.delete(now=at(1))
        assert ids((await store.list_finished(TaskFilter(Status.CANCELLED), now=at(40))).items) == ["first"]
        assert await store.dead_ids(now=at(40)) == ["last"]

    async def test_lost_leases_are_in_the_lists_of_a_queue_of_that_name(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.lease("first")
        await topology.delete(now=at(1))
        await topology.put(now=at(2))
        found = await store.list_finished(TaskFilter(Status.CANCELLED, queue=QUEUE), now=at(40))
        assert ids(found.items) == ["first"]

    async def test_lost_lease_can_be_settled_no_more(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first")
        await topology.delete(now=at(1))
        outcome = await store.ack(leased, at(31))
        assert getattr(outcome, "code", None) == "lease_expired"
        await store.get("first", at(32))
        outcome = await store.ack(leased, at(33))
        assert getattr(outcome, "code", None) == "lease_expired"

    async def test_it_does_not_come_back_to_a_new_queue(self, store: Store, topology: Topology) -> None:
        await topology.put()
        released, lost = await store.lease("released"), await store.lease("lost")
        await topology.delete()
        await topology.put()
        settled(await store.release(released))
        assert await store.reserve_ids(at(60)) == []
        assert await store.status(lost.task.id, at(60)) is Status.CANCELLED

    async def test_it_holds_its_id_and_not_its_key(self, store: Store, topology: Topology) -> None:
        await topology.put()
        leased = await store.lease("first", dedupe_key="key")
        await topology.delete()
        assert not (await store.enqueue("second", dedupe_key="key")).existed
        assert ids((await store.list_live()).items) == ["first", "second"]
        settled(await store.ack(leased))

    async def test_forced_cancel(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.lease("first")
        await topology.delete()
        await store.cancel("first", force=True)
        assert await store.status("first") is Status.CANCELLED


class TestWhatTimeDecidedBeforeDeletion:
    """Nobody need have looked: what was over before stays what it was, and what waited is gone."""

    async def test_expired_task_is_in_the_history(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.enqueue("first", ttl_seconds=10)
        await topology.delete(now=at(20))
        task = await store.get("first", at(21))
        assert (task.status, task.finished_at) == (Status.EXPIRED, at(10))

    async def test_task_that_came_back_waited(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.lease("first")
        await topology.delete(now=at(40))
        with pytest.raises(TaskNotFound):
            await store.get("first", at(41))

    async def test_task_out_of_attempts_is_dead(self, store: Store, topology: Topology) -> None:
        await topology.put()
        await store.lease("first", max_attempts=1)
        await topology.delete(now=at(40))
        assert await store.dead_ids(now=at(41)) == ["first"]
