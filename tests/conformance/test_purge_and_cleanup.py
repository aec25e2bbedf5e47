"""Taking away what waits in a queue, and what has finished in it."""

import pytest

from app.domain.commands import TaskFilter
from app.domain.errors import TaskNotFound
from app.domain.task import Status
from tests.conformance.steps import QUEUE, Store, at, ids, new_task, settled
from tests.conformance.topology_steps import Emptied, Topology


class TestPurge:
    async def test_what_waits_is_gone(self, store: Store, topology: Topology) -> None:
        await store.enqueue("ready")
        await store.enqueue("later", delay_seconds=60)
        assert await topology.purge() == 2
        for task_id in ("ready", "later"):
            with pytest.raises(TaskNotFound):
                await store.get(task_id)
        assert await store.reserve_ids(at(61)) == []
        assert await topology.purge() == 0

    async def test_it_leaves_no_trace(self, store: Store, topology: Topology) -> None:
        await store.enqueue("ready")
        await topology.purge()
        for status in (Status.CANCELLED, Status.EXPIRED, Status.DONE, Status.DEAD):
            assert ids((await store.list_finished(TaskFilter(status))).items) == []

    async def test_ids_and_keys_are_free(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first", dedupe_key="key")
        await topology.purge()
        assert not (await store.enqueue("first", dedupe_key="key")).existed

    async def test_leased_tasks_stay_and_can_come_back(self, store: Store, topology: Topology) -> None:
        leased = await store.lease("leased")
        await store.enqueue("ready")
        assert await topology.purge() == 1
        assert settled(await store.release(leased)).status is Status.READY
        assert await store.reserve_ids() == ["leased"]

    async def test_history_and_dead_letters_stay(self, store: Store, topology: Topology) -> None:
        await store.finish("done", dedupe_key="key", dedupe_seconds=60)
        await store.bury("dead")
        assert await topology.purge() == 0
        assert await store.status("done") is Status.DONE
        assert await store.dead_ids() == ["dead"]
        assert (await store.enqueue(dedupe_key="key")).existed

    async def test_settings_stay(self, store: Store, topology: Topology) -> None:
        await topology.put(max_attempts=2, paused=True)
        await store.enqueue()
        assert await topology.purge() == 1
        assert (await topology.get()).settings.max_attempts == 2

    async def test_what_time_made_of_tasks_counts(self, store: Store, topology: Topology) -> None:
        await store.lease("came-back")
        await store.lease("died", max_attempts=1)
        await store.enqueue("expired", ttl_seconds=10)
        assert await topology.purge(now=at(30)) == 1
        assert await store.status("died", at(30)) is Status.DEAD
        assert await store.status("expired", at(30)) is Status.EXPIRED
        with pytest.raises(TaskNotFound):
            await store.get("came-back", at(30))

    async def test_more_than_a_batch(self, store: Store, topology: Topology) -> None:
        for _ in range(3):
            await store.enqueue_many(*(new_task() for _ in range(900)))
        await store.enqueue_many(*(new_task(delay_seconds=60) for _ in range(300)))
        assert await topology.purge() == 3000
        assert await topology.counts() == {}

    async def test_other_queues_and_tenants_are_left_alone(
        self, store: Store, topology: Topology, other_store: Store
    ) -> None:
        await store.enqueue("first", queue="other")
        await store.enqueue("second", queue="Work")
        await other_store.enqueue("first")
        assert await topology.purge() == 0
        assert await store.reserve_ids(queues=["other", "Work"]) == ["first", "second"]
        assert await other_store.reserve_ids() == ["first"]

    async def test_attempts_of_a_purged_task_are_not_those_of_the_next(self, store: Store, topology: Topology) -> None:
        settled(await store.nack(await store.lease("first"), delay_seconds=0))
        await topology.purge(now=at(1))
        with pytest.raises(TaskNotFound):
            await store.attempts("first", at(1))
        await store.enqueue("first", at(2))
        assert await store.attempts("first", at(2)) == []


class TestCleanup:
    async def test_all_of_the_history(self, store: Store, topology: Topology) -> None:
        await store.finish("done")
        await store.enqueue("cancelled")
        await store.cancel("cancelled")
        await store.enqueue("expired", ttl_seconds=5)
        assert await topology.cleanup(now=at(5)) == 3
        for task_id in ("done", "cancelled", "expired"):
            with pytest.raises(TaskNotFound):
                await store.get(task_id, at(5))
        assert await topology.counts(now=at(5)) == {}

    async def test_what_is_older(self, store: Store, topology: Topology) -> None:
        await store.finish("old")
        await store.finish("new", at(50))
        assert await topology.cleanup(60, at(59.999)) == 0
        assert await topology.cleanup(60, at(60)) == 1
        assert await store.status("new", at(60)) is Status.DONE

    async def test_dead_letters_and_live_tasks_stay(self, store: Store, topology: Topology) -> None:
        await store.bury("dead")
        await store.lease("leased")
        await store.enqueue("ready")
        assert await topology.cleanup(now=at(1)) == 0
        assert await topology.counts(now=at(1)) == {"dead": 1, "leased": 1, "ready": 1}

    async def test_key_that_is_still_held_stays_held(self, store: Store, topology: Topology) -> None:
        await store.finish("done", dedupe_key="key", dedupe_seconds=60)
        assert await topology.cleanup() == 1
        assert (await store.enqueue(now=at(59), dedupe_key="key")).existed
        assert not (await store.enqueue(now=at(60), dedupe_key="key")).existed

    async def test_more_than_a_batch(self, store: Store, topology: Topology) -> None:
        for _ in range(3):
            await store.enqueue_many(*(new_task(ttl_seconds=5) for _ in range(700)))
        assert await topology.cleanup(now=at(5)) == 2100
        assert await topology.counts(now=at(5)) == {}

    async def test_other_queues_and_tenants_are_left_alone(
        self, store: Store, topology: Topology, other_store: Store
    ) -> None:
        await store.finish("first", queue="Work")
        await other_store.finish("first")
        assert await topology.cleanup() == 0
        assert await store.status("first") is Status.DONE
        assert await other_store.status("first") is Status.DONE

    async def test_attempts_go_with_their_task(self, emptied: Emptied) -> None:
        store = emptied.store
        await store.finish("first")
        await store.finish("second", queue="other")
        assert await emptied.topology.cleanup(now=at(1)) == 1
        assert await emptied.rows("mq_task_attempts") == 1
        assert len(await store.attempts("second", at(1))) == 1

    async def test_attempts_of_a_later_task_of_that_id_stay(self, store: Store, topology: Topology) -> None:
        await store.finish("first")
        await store.finish("first", at(100), queue="other")
        assert await topology.cleanup(now=at(200), name=QUEUE) == 1
        assert len(await store.attempts("first", at(200))) == 1
