"""Queues: declared, looked at, changed, deleted; and those that nobody declared."""

from dataclasses import replace

import pytest

from app.domain.backoff import Backoff
from app.domain.commands import TaskFilter
from app.domain.errors import QueueNotFound, TaskNotFound, TopicNotFound
from app.domain.queue import DEFAULT_QUEUE_SETTINGS, QueueSettings
from app.domain.task import Status
from tests.conformance.steps import QUEUE, T0, Store, at, ids, new_task, settled
from tests.conformance.topology_steps import Settings, Topology

ALL_SETTINGS: Settings = {
    "topic": "news",
    "exclusive": True,
    "keep_alive_seconds": 12.5,
    "max_attempts": 0,
    "lease_seconds": 1.25,
    "max_lease_seconds": 100.5,
    "backoff": Backoff(base_seconds=0.5, factor=1.5, max_seconds=7.75, jitter=0.0),
    "rate_per_second": 0.125,
    "concurrency_limit": 7,
    "paused": True,
    "history_days": 0.5,
    "dlq_days": 2.5,
}
ORDINARY: Settings = {**ALL_SETTINGS, "exclusive": False}


class TestDeclare:
    async def test_new_and_changed(self, topology: Topology) -> None:
        assert await topology.put_is_new()
        assert not await topology.put_is_new(max_attempts=3)
        assert (await topology.get()).settings.max_attempts == 3

    async def test_defaults(self, topology: Topology) -> None:
        queue = await topology.put()
        assert queue.settings == DEFAULT_QUEUE_SETTINGS == QueueSettings()
        assert (queue.name, queue.declared, queue.keep_alive_until) == (QUEUE, True, None)
        assert (queue.created_at, queue.updated_at) == (T0, T0)

    async def test_all_settings_come_back(self, topology: Topology) -> None:
        await topology.put_topic("news")
        queue = await topology.put(**ALL_SETTINGS)
        assert queue.settings == QueueSettings(**ALL_SETTINGS)
        assert (await topology.get()).settings == QueueSettings(**ALL_SETTINGS)
        assert (await topology.list()).items == [await topology.get()]

    @pytest.mark.parametrize(
        "settings",
        [
            Settings(history_days=None, dlq_days=None),
            Settings(history_days=0, dlq_days=0),
            Settings(rate_per_second=1_000_000.0, concurrency_limit=2**31 - 1, max_attempts=2**31 - 1),
            Settings(rate_per_second=0.000001, lease_seconds=0.001, max_lease_seconds=0.001),
        ],
    )
    async def test_extremes_come_back(self, topology: Topology, settings: Settings) -> None:
        await topology.put(**settings)
        assert (await topology.get()).settings == QueueSettings(**settings)

    async def test_put_sets_what_is_not_given_to_its_default(self, topology: Topology) -> None:
        await topology.put_topic("news")
        await topology.put(**ORDINARY)
        queue = await topology.put(now=at(5), max_attempts=3)
        assert queue.settings == QueueSettings(max_attempts=3)
        assert (queue.created_at, queue.updated_at) == (T0, at(5))

    @pytest.mark.parametrize(
        "change",
        [
            Settings(topic="news"),
            Settings(exclusive=True),
            Settings(keep_alive_seconds=12.5),
            Settings(max_attempts=0),
            Settings(lease_seconds=1.25),
            Settings(max_lease_seconds=100.5),
            Settings(backoff=ALL_SETTINGS["backoff"]),
            Settings(rate_per_second=0.125),
            Settings(concurrency_limit=7),
            Settings(paused=True),
            Settings(history_days=None),
            Settings(dlq_days=2.5),
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_patch_changes_only_what_is_given(self, topology: Topology, change: Settings) -> None:
        await topology.put_topic("news")
        await topology.put()
        queue = await topology.patch(**change)
        assert queue.settings == replace(DEFAULT_QUEUE_SETTINGS, **change)
        assert (await topology.get()).settings == queue.settings

    async def test_unknown_topic_is_refused(self, topology: Topology) -> None:
        with pytest.raises(TopicNotFound):
            await topology.put(topic="news")
        with pytest.raises(QueueNotFound):
            await topology.get()
        await topology.put()
        with pytest.raises(TopicNotFound):
            await topology.patch(topic="news", max_attempts=1)
        assert (await topology.get()).settings == DEFAULT_QUEUE_SETTINGS

    async def test_topic_of_another_tenant_is_unknown(self, topology: Topology, other_topology: Topology) -> None:
        await other_topology.put_topic("news")
        with pytest.raises(TopicNotFound):
            await topology.put(topic="news")

    async def test_declaring_a_queue_keeps_what_waits_in_it(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first", dedupe_key="key")
        await store.enqueue("later", delay_seconds=60)
        leased = await store.lease("leased", queue=QUEUE, priority=99)
        assert await topology.put_is_new()
        assert await topology.counts() == {"ready": 1, "scheduled": 1, "leased": 1}
        assert (await store.enqueue("second", dedupe_key="key")).id == "first"
        settled(await store.release(leased))
        assert await store.reserve_ids() == ["leased", "first"]

    async def test_names_that_differ_in_case_are_different_queues(self, store: Store, topology: Topology) -> None:
        await topology.put("work", max_attempts=1)
        assert await topology.put_is_new("Work", max_attempts=2)
        assert await topology.put_is_new("WORK")
        await store.enqueue("first", queue="Work")
        assert await topology.counts("work") == {}
        assert (await topology.get("work")).settings.max_attempts == 1
        await topology.delete("work")
        assert await store.reserve_ids(queues=["Work"]) == ["first"]

    @pytest.mark.parametrize("name", ["a", "..a", "A.b:c_d-e", "x" * 255, "0"])
    async def test_names(self, topology: Topology, name: str) -> None:
        await topology.put(name)
        assert (await topology.get(name)).name == name

    async def test_tenants_are_apart(
        self, store: Store, topology: Topology, other_store: Store, other_topology: Topology
    ) -> None:
        await topology.put(max_attempts=1)
        with pytest.raises(QueueNotFound):
            await other_topology.get()
        assert await other_topology.put_is_new(paused=True)
        assert (await topology.get()).settings == QueueSettings(max_attempts=1)
        await store.enqueue("first")
        await other_store.enqueue("first")
        await other_topology.delete()
        assert await store.reserve_ids() == ["first"]


class TestList:
    async def test_in_order_of_name_by_pages(self, topology: Topology) -> None:
        for name in ("b", "a", "C", "c", "B"):
            await topology.put(name)
        seen: list[str] = []
        page = await topology.list(limit=2)
        seen += [queue.name for queue in page.items]
        while page.next_key is not None:
            page = await topology.list(limit=2, after=page.next_key)
            assert len(page.items) <= 2
            seen += [queue.name for queue in page.items]
        assert seen == ["B", "C", "a", "b", "c"]

    async def test_last_page_that_is_full_has_no_next(self, topology: Topology) -> None:
        for name in ("a", "b"):
            await topology.put(name)
        assert (await topology.list(limit=2)).next_key is None

    async def test_by_topic(self, topology: Topology) -> None:
        await topology.subscribe("news", "a", "c")
        await topology.subscribe("News", "d")
        await topology.put("b")
        assert await topology.names("news") == ["a", "c"]
        assert await topology.names("unknown") == []
        assert await topology.names() == ["a", "b", "c", "d"]

    async def test_undeclared_queues_are_not_listed(self, store: Store, topology: Topology) -> None:
        await store.enqueue(queue="undeclared")
        await topology.put("declared")
        assert await topology.names() == ["declared"]


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


class TestUndeclared:
    async def test_it_has_no_settings_to_look_at(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first")
        with pytest.raises(QueueNotFound):
            await topology.get()
        with pytest.raises(QueueNotFound):
            await topology.patch(max_attempts=1)
        with pytest.raises(QueueNotFound):
            await topology.delete()
        with pytest.raises(QueueNotFound):
            await topology.keep_alive(60)
        assert await store.reserve_ids() == ["first"]

    async def test_stats_purge_and_cleanup_work(self, store: Store, topology: Topology) -> None:
        await store.finish("done")
        await store.enqueue("first")
        assert await topology.counts() == {"done": 1, "ready": 1}
        assert await topology.purge() == 1
        assert await topology.cleanup() == 1
        assert await topology.counts() == {}

    async def test_so_they_do_for_one_that_never_was(self, topology: Topology) -> None:
        assert await topology.counts("never") == {}
        assert await topology.purge("never") == 0
        assert await topology.cleanup(name="never") == 0
        assert await topology.names() == []

    @pytest.mark.parametrize("paused", [True, False])
    async def test_pause_and_resume_declare_it(self, store: Store, topology: Topology, paused: bool) -> None:
        await store.enqueue("first")
        queue = await (topology.pause() if paused else topology.resume())
        assert queue.settings == QueueSettings(paused=paused)
        assert await topology.get() == queue
        assert await topology.counts() == {"ready": 1}

    async def test_pause_declares_one_that_never_was(self, topology: Topology) -> None:
        await topology.pause("never")
        assert await topology.names() == ["never"]
        assert not await topology.put_is_new("never")
