"""What a queue decides for the tasks that do not say otherwise."""

from datetime import timedelta

import pytest

from app.domain.backoff import QUEUE_BACKOFF, Backoff, BackoffOverride
from app.domain.errors import InvalidRequest, TaskNotFound
from app.domain.task import Status
from tests.conformance.steps import QUEUE, T0, Store, ack_item, at, extended, next_try, settled
from tests.conformance.topology_steps import Emptied, Topology

STEADY = Backoff(base_seconds=7, factor=3, max_seconds=100, jitter=0)


class TestMaxAttempts:
    async def test_queues_own(self, store: Store, topology: Topology) -> None:
        await topology.put(max_attempts=1)
        await store.enqueue("first", max_attempts=None)
        leased = await store.reserve_one()
        assert leased.task.max_attempts == 1
        assert settled(await store.nack(leased)).status is Status.DEAD

    async def test_what_the_task_says_wins(self, store: Store, topology: Topology) -> None:
        await topology.put(max_attempts=1)
        await store.enqueue("first", max_attempts=0)
        assert (await store.get("first")).max_attempts == 0

    async def test_unlimited(self, store: Store, topology: Topology) -> None:
        await topology.put(max_attempts=0)
        await store.enqueue("first", max_attempts=None)
        for step in range(7):
            assert settled(await store.nack(await store.reserve_one(at(step)), at(step), delay_seconds=0))
        assert await store.status("first", at(7)) is Status.READY

    async def test_undeclared_queue(self, store: Store) -> None:
        await store.enqueue("first", max_attempts=None)
        assert (await store.get("first")).max_attempts == 5

    async def test_change_is_for_tasks_that_come_later(self, store: Store, topology: Topology) -> None:
        await topology.put(max_attempts=2)
        await store.enqueue("before", max_attempts=None)
        await topology.patch(max_attempts=9)
        await store.enqueue("after", max_attempts=None)
        assert ((await store.get("before")).max_attempts, (await store.get("after")).max_attempts) == (2, 9)


class TestLeaseSeconds:
    async def test_queues_own(self, store: Store, topology: Topology) -> None:
        await topology.put(lease_seconds=7.5)
        await store.enqueue()
        assert (await store.reserve_one(lease_seconds=None)).task.lease_until == at(7.5)

    async def test_what_the_reserve_says_wins(self, store: Store, topology: Topology) -> None:
        await topology.put(lease_seconds=7.5)
        await store.enqueue()
        assert (await store.reserve_one(lease_seconds=3)).task.lease_until == at(3)

    async def test_undeclared_queue(self, store: Store) -> None:
        await store.enqueue()
        assert (await store.reserve_one(lease_seconds=None)).task.lease_until == at(30)

    async def test_each_task_takes_its_queues(self, store: Store, topology: Topology) -> None:
        await topology.put("short", lease_seconds=1)
        await topology.put("long", lease_seconds=100)
        for queue in ("short", "long", "undeclared"):
            await store.enqueue(queue=queue)
        leased = (await store.reserve(queues=["short", "long", "undeclared"], limit=3, lease_seconds=None)).tasks
        ends = {task.task.queue: task.task.lease_until for task in leased}
        assert ends == {"short": at(1), "long": at(100), "undeclared": at(30)}


class TestMaxLeaseSeconds:
    async def test_longer_reserve_is_refused_and_leases_nothing(self, store: Store, topology: Topology) -> None:
        await topology.put(lease_seconds=10, max_lease_seconds=10)
        await store.enqueue("first")
        with pytest.raises(InvalidRequest) as refused:
            await store.reserve(lease_seconds=10.001)
        assert refused.value.location == ("body", "lease_seconds")
        assert (await store.get("first")).attempts == 0
        assert (await store.reserve_one(lease_seconds=10)).task.lease_until == at(10)

    async def test_one_of_several_queues_is_enough(self, store: Store, topology: Topology) -> None:
        await topology.put("short", lease_seconds=10, max_lease_seconds=10)
        await store.enqueue("first", queue="long")
        with pytest.raises(InvalidRequest):
            await store.reserve(queues=["long", "short"], lease_seconds=11)
        assert await store.status("first") is Status.READY

    async def test_undeclared_queue(self, store: Store) -> None:
        with pytest.raises(InvalidRequest):
            await store.reserve(lease_seconds=43201)
        await store.enqueue()
        assert (await store.reserve_one(lease_seconds=43200)).task.lease_until == at(43200)

    async def test_longer_extend_is_refused_and_changes_nothing(self, store: Store, topology: Topology) -> None:
        await topology.put(max_lease_seconds=40)
        leased = await store.lease("first")
        assert isinstance(await store.extend(leased, at(1), 40.001), InvalidRequest)
        assert (await store.get("first", at(1))).lease_until == at(30)
        assert extended(await store.extend(leased, at(1), 40)).lease_until == at(41)

    async def test_change_is_seen_at_once(self, store: Store, topology: Topology) -> None:
        await topology.put(max_lease_seconds=100)
        leased = await store.lease()
        await topology.patch(max_lease_seconds=50)
        assert isinstance(await store.extend(leased, lease_seconds=60), InvalidRequest)
        with pytest.raises(InvalidRequest):
            await store.reserve(lease_seconds=60)


class TestBackoff:
    async def test_queues_own(self, store: Store, topology: Topology) -> None:
        await topology.put(backoff=STEADY)
        await store.enqueue("first", max_attempts=0)
        now, delays = at(0), []
        for _ in range(4):
            again_at = next_try(await store.nack(await store.reserve_one(now), now, backoff=QUEUE_BACKOFF))
            delays.append((again_at - now).total_seconds())
            now = again_at
        assert delays == [7, 21, 63, 100]

    async def test_part_of_it_otherwise(self, store: Store, topology: Topology) -> None:
        await topology.put(backoff=STEADY)
        leased = await store.lease()
        outcome = settled(await store.nack(leased, backoff=BackoffOverride(base_seconds=2)))
        assert outcome.available_at == at(2)
        again = settled(await store.nack(await store.reserve_one(at(2)), at(2), backoff=BackoffOverride(max_seconds=4)))
        assert again.available_at == at(6)

    async def test_what_the_nack_says_wins(self, store: Store, topology: Topology) -> None:
        await topology.put(backoff=STEADY)
        leased = await store.lease()
        assert settled(await store.nack(leased, delay_seconds=1, backoff=QUEUE_BACKOFF)).available_at == at(1)

    async def test_jitter_spreads(self, store: Store, topology: Topology) -> None:
        await topology.put(backoff=Backoff(base_seconds=100, factor=1, max_seconds=1000, jitter=0.5))
        waits = [next_try(await store.nack(await store.lease(), backoff=QUEUE_BACKOFF)) for _ in range(10)]
        assert len(set(waits)) > 1
        assert all(at(50) <= wait <= at(150) for wait in waits)

    async def test_undeclared_queue(self, store: Store) -> None:
        again_at = next_try(await store.nack(await store.lease(), backoff=QUEUE_BACKOFF))
        assert at(4) <= again_at <= at(6)

    async def test_change_is_seen_at_once(self, store: Store, topology: Topology) -> None:
        leased = await store.lease()
        await topology.put(backoff=STEADY)
        assert settled(await store.nack(leased, backoff=QUEUE_BACKOFF)).available_at == at(7)


class TestHistoryDays:
    """How long what has finished is kept."""

    @pytest.mark.parametrize(
        ("days", "kept_seconds"),
        [(14.0, 14 * 86400), (0.0, 3600), (0.01, 3600), (1.5, 129600), (36500.0, 36500 * 86400)],
    )
    async def test_kept_for_so_long(self, emptied: Emptied, days: float, kept_seconds: float) -> None:
        await emptied.topology.put(history_days=days)
        await emptied.store.finish("first")
        last = at(0) + timedelta(seconds=kept_seconds)
        assert await emptied.maintenance.drop_old_history(last - timedelta(microseconds=1)) == 0
        assert await emptied.store.status("first") is Status.DONE
        assert await emptied.maintenance.drop_old_history(last) == 1
        with pytest.raises(TaskNotFound):
            await emptied.store.get("first")

    async def test_kept_for_ever(self, emptied: Emptied) -> None:
        await emptied.topology.put(history_days=None)
        await emptied.store.finish("first")
        assert await emptied.maintenance.drop_old_history(at(1e10)) == 0

    async def test_undeclared_queue(self, emptied: Emptied) -> None:
        await emptied.store.finish("first")
        assert await emptied.maintenance.drop_old_history(at(14 * 86400 - 1)) == 0
        assert await emptied.maintenance.drop_old_history(at(14 * 86400)) == 1

    async def test_queue_that_keeps_all_does_not_keep_others(self, emptied: Emptied) -> None:
        await emptied.topology.put("all", history_days=None)
        await emptied.topology.put("none", history_days=0)
        await emptied.store.finish("kept", queue="all")
        await emptied.store.finish("dropped", queue="none")
        assert await emptied.maintenance.drop_old_history(at(3600)) == 1
        assert await emptied.store.status("kept", at(3600)) is Status.DONE

    async def test_tasks_that_are_acked_together_are_kept_as_their_queues_say(self, emptied: Emptied) -> None:
        for queue, days in (("day", 1.0), ("all", None), ("hour", 0.0)):
            await emptied.topology.put(queue, history_days=days)
        store = emptied.store
        names = ["undeclared", "all", "day", "hour", "all", "day"]
        items = [ack_item(await store.lease(f"{name}-{place}", queue=name)) for place, name in enumerate(names)]
        assert [settled(outcome).queue for outcome in await store.repository.ack_many(store.tenant, items, T0)] == names
        dropped = [await emptied.maintenance.drop_old_history(at(86400 * days)) for days in (1 / 24, 1, 14, 1e5)]
        assert dropped == [1, 2, 1, 0]
        assert [await store.status(task_id, at(0)) for task_id in ("all-1", "all-4")] == [Status.DONE, Status.DONE]

    async def test_expired_and_cancelled_too(self, emptied: Emptied) -> None:
        await emptied.topology.put(history_days=0)
        await emptied.store.enqueue("cancelled")
        await emptied.store.cancel("cancelled")
        await emptied.store.enqueue("expired", ttl_seconds=10)
        assert await emptied.store.status("expired", at(11)) is Status.EXPIRED
        assert await emptied.maintenance.drop_old_history(at(3600)) == 1
        assert await emptied.maintenance.drop_old_history(at(3610)) == 1


class TestPause:
    async def test_only_that_queue(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first")
        await store.enqueue("second", queue="other")
        await topology.pause()
        assert await store.reserve_ids() == []
        assert await store.reserve_ids(queues=[QUEUE, "other"]) == ["second"]
        await topology.resume()
        assert await store.reserve_ids() == ["first"]

    async def test_it_takes_new_tasks(self, store: Store, topology: Topology) -> None:
        await topology.pause()
        await store.enqueue("first")
        assert await store.status("first") is Status.READY
        assert (await store.reserve()).next_available_at is None

    async def test_what_runs_runs_on(self, store: Store, topology: Topology) -> None:
        leased = await store.lease("first")
        await topology.pause()
        assert extended(await store.extend(leased, at(1))).lease_until == at(31)
        assert settled(await store.nack(leased, at(2), delay_seconds=0)).status is Status.READY
        assert await store.reserve_ids(at(3)) == []

    async def test_time_goes_on(self, store: Store, topology: Topology) -> None:
        await store.enqueue("later", delay_seconds=10)
        await store.enqueue("expires", ttl_seconds=10)
        await topology.pause()
        assert await store.status("later", at(10)) is Status.READY
        assert await store.status("expires", at(10)) is Status.EXPIRED
        assert await topology.counts(now=at(10)) == {"ready": 1, "expired": 1}

    async def test_nothing_is_to_do_in_it(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first")
        await store.enqueue("second", queue="other")
        queues = [QUEUE, "other"]
        assert sorted(await store.repository.queues_with_work(store.tenant, queues, at(0))) == ["other", QUEUE]
        await topology.pause()
        assert await store.repository.queues_with_work(store.tenant, queues, at(0)) == ["other"]

    async def test_pausing_twice_and_other_settings(self, topology: Topology) -> None:
        await topology.put(max_attempts=9)
        await topology.pause()
        assert (await topology.pause()).settings.max_attempts == 9
        assert not (await topology.resume()).settings.paused
        assert not (await topology.resume()).settings.paused
