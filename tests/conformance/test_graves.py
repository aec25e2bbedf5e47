"""What a janitor does about queues that are gone: their rows go later, and leave behind what callers were told of."""

import asyncio
import re

import pytest

from app.domain.errors import TaskNotFound
from app.domain.task import Status
from app.repository.cleaning import TOMBSTONE_AGE
from tests.conformance.steps import QUEUE, at, extended, ids, new_task, settled
from tests.conformance.topology_steps import Emptied, sweep, until_done
from tests.plans.recording import recorded

DAY = 86400.0
# What tells a look for leases that are over.
LOOK = re.compile("(lease_until|line_at) <=")


class TestGraves:
    async def test_deleted_queues_rows_go(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        for _ in range(2):
            await emptied.store.enqueue_many(*(new_task() for _ in range(800)))
        await emptied.store.enqueue_many(*(new_task(delay_seconds=60) for _ in range(800)))
        await emptied.topology.delete(now=at(1))
        assert await emptied.rows("mq_tasks") == 2400
        batches = await until_done(emptied.maintenance.clear_graves, at(2))
        assert (sum(batches), len(batches) >= 2) == (2400, True)
        assert await emptied.rows("mq_tasks") == 0

    async def test_only_theirs_go(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        await emptied.store.enqueue("old")
        await emptied.topology.delete(now=at(1))
        await emptied.store.enqueue("new", at(2))
        await emptied.store.enqueue("other", at(2), queue="other")
        assert await until_done(emptied.maintenance.clear_graves, at(3)) == [1]
        assert await emptied.store.reserve_ids(at(4), queues=[QUEUE, "other"]) == ["new", "other"]

    async def test_leased_ones_stay_until_they_are_settled(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        leased = await emptied.store.lease("leased")
        await emptied.topology.delete(now=at(1))
        await sweep(emptied.maintenance, at(2))
        assert settled(await emptied.store.ack(leased, at(3))).status is Status.DONE

    async def test_lease_of_more_than_an_hour(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        await emptied.store.enqueue("leased")
        await emptied.store.reserve_one(lease_seconds=10_000)
        await emptied.topology.delete(now=at(1))
        for now in (2, 3602, 7200):
            await sweep(emptied.maintenance, at(now))
        await sweep(emptied.maintenance, at(10_000))
        assert await emptied.rows("mq_tasks") == 0
        assert await emptied.store.status("leased", at(10_001)) is Status.CANCELLED

    async def test_leases_that_are_lost_after_it_are_moved(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        await emptied.store.lease("first")
        await emptied.store.lease("last", max_attempts=1)
        await emptied.topology.delete(now=at(1))
        await sweep(emptied.maintenance, at(30))
        assert await emptied.rows("mq_tasks") == 0
        assert await emptied.store.status("first", at(31)) is Status.CANCELLED
        assert await emptied.store.status("last", at(31)) is Status.DEAD

    async def test_many_deleted_queues(self, emptied: Emptied) -> None:
        for number in range(40):
            await emptied.topology.put(f"queue-{number}")
            await emptied.store.enqueue(queue=f"queue-{number}")
            await emptied.topology.delete(f"queue-{number}")
        await until_done(emptied.maintenance.clear_graves, at(1))
        assert await emptied.rows("mq_tasks") == 0

    async def test_empty_graves_do_not_keep_others_waiting(self, emptied: Emptied) -> None:
        for number in range(40):
            await emptied.topology.put(f"queue-{number}")
            await emptied.topology.delete(f"queue-{number}")
        await emptied.topology.put()
        await emptied.store.enqueue("first")
        await emptied.topology.delete(now=at(1))
        for _ in range(20):
            await emptied.maintenance.clear_graves(at(2))
        assert await emptied.rows("mq_tasks") == 0

    async def test_graves_go_at_last(self, emptied: Emptied) -> None:
        for number in range(15):
            await emptied.topology.put(f"queue-{number}")
            await emptied.topology.delete(f"queue-{number}")
        assert await emptied.rows("mq_queue_graves") == 15
        for _ in range(20):
            await emptied.maintenance.clear_graves(at(DAY))
        assert await emptied.rows("mq_queue_graves") == 0

    async def test_keys_that_done_tasks_held_in_it_go(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        await emptied.store.finish(dedupe_key="key", dedupe_seconds=100)
        await emptied.topology.delete(now=at(1))
        await sweep(emptied.maintenance, at(100) + TOMBSTONE_AGE)
        assert await emptied.rows("mq_tasks") == 0

    async def test_two_at_once(self, emptied: Emptied) -> None:
        await emptied.topology.put()
        await emptied.store.enqueue_many(*(new_task() for _ in range(500)))
        await emptied.topology.delete(now=at(1))
        others = [emptied.open().maintenance for _ in range(4)]
        cleared = await asyncio.gather(*(until_done(other.clear_graves, at(2)) for other in others))
        assert sum(sum(each) for each in cleared) == 500
        assert await emptied.rows("mq_tasks") == 0


class TestEndedQueues:
    async def test_they_and_what_waited_in_them_go(self, emptied: Emptied) -> None:
        await emptied.topology.put("stays")
        for number in range(3):
            await emptied.topology.put(f"queue-{number}", exclusive=True, keep_alive_seconds=60)
            await emptied.store.enqueue(queue=f"queue-{number}")
        assert await emptied.maintenance.bury_ended_queues(at(59)) == 0
        assert await emptied.maintenance.bury_ended_queues(at(60)) == 3
        assert await emptied.rows("mq_queues") == 1
        await sweep(emptied.maintenance, at(61))
        assert await emptied.rows("mq_tasks") == 0

    async def test_one_that_was_kept_alive_stays(self, emptied: Emptied) -> None:
        await emptied.topology.put(exclusive=True, keep_alive_seconds=60)
        await emptied.topology.keep_alive(60, at(30))
        assert await emptied.maintenance.bury_ended_queues(at(60)) == 0
        assert (await emptied.topology.get(now=at(60))).keep_alive_until == at(90)

    async def test_new_one_of_the_same_name_stays(self, emptied: Emptied) -> None:
        await emptied.topology.put(exclusive=True, keep_alive_seconds=60)
        await emptied.topology.put(now=at(60), exclusive=True, keep_alive_seconds=60)
        await emptied.store.enqueue("new", at(61))
        await sweep(emptied.maintenance, at(62))
        assert await emptied.store.reserve_ids(at(63)) == ["new"]

    async def test_two_at_once(self, emptied: Emptied) -> None:
        for number in range(20):
            await emptied.topology.put(f"queue-{number}", exclusive=True, keep_alive_seconds=60)
        others = [emptied.open().maintenance for _ in range(4)]
        await asyncio.gather(*(until_done(other.bury_ended_queues, at(60)) for other in others))
        assert await emptied.rows("mq_queues") == 0
        assert await emptied.rows("mq_queue_graves") == 20

    @pytest.mark.parametrize("swept", [False, True])
    async def test_what_time_decided_before_stays_decided(self, emptied: Emptied, swept: bool) -> None:
        """Whether the queue is buried before its tasks are looked at, or not at all."""
        await emptied.topology.put(exclusive=True, keep_alive_seconds=60)
        await emptied.store.lease("died", max_attempts=1)
        await emptied.store.lease("came-back")
        await emptied.store.enqueue("expired", ttl_seconds=10)
        if swept:
            await until_done(emptied.maintenance.bury_ended_queues, at(61))
            await until_done(emptied.maintenance.clear_graves, at(61))
        assert await emptied.store.status("died", at(62)) is Status.DEAD
        assert await emptied.store.status("expired", at(62)) is Status.EXPIRED
        with pytest.raises(TaskNotFound):
            await emptied.store.get("came-back", at(62))


class TestManyGraves:
    """Queues that lived shortly leave very many graves, and hardly anything in them."""

    MANY = 120

    async def bury_many(self, emptied: Emptied) -> None:
        for number in range(self.MANY):
            await emptied.topology.put(f"short-{number}", exclusive=True, keep_alive_seconds=1)
        while await emptied.maintenance.bury_ended_queues(at(1)):
            pass
        assert await emptied.rows("mq_queue_graves") >= self.MANY

    async def test_lists_look_at_them_seldom(self, emptied: Emptied) -> None:
        await emptied.store.enqueue()
        with recorded(emptied.dialect) as without:
            await emptied.store.list_live()
        await self.bury_many(emptied)
        await emptied.store.list_live(now=at(2))
        with recorded(emptied.dialect) as with_many:
            await emptied.store.list_live(now=at(2.5))
        assert len(with_many) == len(without)

    async def test_no_look_is_at_all_of_them(self, emptied: Emptied) -> None:
        await self.bury_many(emptied)
        await emptied.store.enqueue(now=at(1))
        with recorded(emptied.dialect) as sent:
            await emptied.store.list_live(now=at(2))
        last = f"{await self.last_id(emptied)}"
        looks = [str(each.parameters) for each in sent if LOOK.search(each.sql)]
        assert len(looks) == self.MANY // 100 + 1
        assert sum(last in look for look in looks) <= 1

    async def last_id(self, emptied: Emptied) -> int:
        async with emptied.dialect.connect(write=False) as connection:
            result = await connection.exec_driver_sql("SELECT max(queue_id) FROM mq_queue_graves")
            return int(result.scalar_one())

    async def test_lost_lease_in_one_of_them_is_seen_without_a_janitor(self, emptied: Emptied) -> None:
        await emptied.topology.put("held")
        await emptied.store.lease("lost", queue="held", max_attempts=1)
        await emptied.topology.delete("held", at(1))
        await self.bury_many(emptied)
        assert ids((await emptied.store.list_live(now=at(29))).items) == ["lost"]
        assert await emptied.store.dead_ids(now=at(29)) == []
        assert await emptied.store.dead_ids(now=at(30)) == ["lost"]

    async def test_extended_lease_in_one_of_them(self, emptied: Emptied) -> None:
        await emptied.topology.put("held")
        leased = await emptied.store.lease("held", queue="held", max_attempts=1)
        await emptied.topology.delete("held", at(1))
        await emptied.store.list_live(now=at(2))
        extended(await emptied.store.extend(leased, at(20), lease_seconds=100))
        assert await emptied.store.dead_ids(now=at(60)) == []
        assert await emptied.store.dead_ids(now=at(120)) == ["held"]

    async def test_janitor_leaves_them_alone_for_longer_and_longer(self, emptied: Emptied) -> None:
        await self.bury_many(emptied)
        await until_done(emptied.maintenance.clear_graves, at(2))
        with recorded(emptied.dialect) as idle:
            assert await emptied.maintenance.clear_graves(at(2.5)) == 0
        assert not [each for each in idle if "DELETE" in each.sql or "UPDATE mq" in each.sql]
        for seconds in (10, 100, 1000, DAY):
            await until_done(emptied.maintenance.clear_graves, at(seconds))
        assert await emptied.rows("mq_queue_graves") == 0
