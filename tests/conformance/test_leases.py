"""Leases: only the right token in time may settle a task, and a lease that ran out gives the task back."""

import pytest
from msgspec.structs import replace

from app.domain.commands import DeadLetterFilter, TaskEdit, TaskFilter
from app.domain.errors import LeaseExpired, LeaseMismatch, LeaseRefused, TaskNotFound, TaskNotLeased
from app.domain.task import Status
from tests.conformance.steps import (
    QUEUE,
    T0,
    VERBS,
    Store,
    Verb,
    ack_item,
    at,
    extend_item,
    extended,
    fail_item,
    forged,
    ids,
    nack_item,
    new_task,
    release_item,
    settled,
)


@pytest.mark.parametrize("verb", VERBS)
class TestRefusal:
    """Whatever a worker asks without a right to it is refused by name, and changes nothing."""

    async def test_wrong_token(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        assert type(await store.settle(verb, forged(leased), at(1))) is LeaseMismatch
        assert await store.get("a", at(1)) == leased.task

    async def test_lease_that_ran_out_a_moment_ago(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        assert type(await store.settle(verb, leased, at(30))) is LeaseExpired
        # As of a moment before, which shows that nobody has moved it.
        assert await store.get("a", at(29)) == leased.task

    async def test_wrong_token_after_the_lease_ran_out(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        assert type(await store.settle(verb, forged(leased), at(30))) is TaskNotLeased
        assert await store.get("a", at(29)) == leased.task

    async def test_lost_lease_while_another_worker_has_the_task(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a")
        second = await store.reserve_one(at(31))
        assert type(await store.settle(verb, lost, at(32))) is LeaseMismatch
        assert await store.get("a", at(32)) == second.task

    async def test_lost_lease_of_a_task_that_waits_again(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a")
        before = await store.get("a", at(31))
        assert before.status is Status.READY
        assert type(await store.settle(verb, lost, at(32))) is LeaseExpired
        assert await store.get("a", at(32)) == before

    async def test_lease_before_the_last_one(self, store: Store, verb: Verb) -> None:
        first = await store.lease("a")
        await store.reserve_one(at(31))
        before = await store.get("a", at(100))
        assert type(await store.settle(verb, first, at(100))) is TaskNotLeased
        assert await store.get("a", at(100)) == before

    async def test_lost_lease_of_a_task_that_died_of_it(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a", max_attempts=1)
        before = await store.get("a", at(31))
        assert before.status is Status.DEAD
        assert type(await store.settle(verb, lost, at(32))) is LeaseExpired
        assert await store.get("a", at(32)) == before

    async def test_lost_lease_of_a_task_that_expired_meanwhile(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a", ttl_seconds=10)
        before = await store.get("a", at(31))
        assert before.status is Status.EXPIRED
        assert type(await store.settle(verb, lost, at(32))) is LeaseExpired
        assert await store.get("a", at(32)) == before

    async def test_lost_lease_of_a_task_that_expired_later(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a", ttl_seconds=60)
        await store.get("a", at(31))
        assert await store.status("a", at(60)) is Status.EXPIRED
        assert type(await store.settle(verb, lost, at(61))) is LeaseExpired

    async def test_lost_lease_of_a_task_that_was_cancelled_later(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a")
        await store.cancel("a", at(31))
        assert type(await store.settle(verb, lost, at(32))) is LeaseExpired

    async def test_lost_lease_of_a_task_that_was_requeued(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a", max_attempts=1)
        await store.requeue("a", at(31))
        assert type(await store.settle(verb, lost, at(32))) is LeaseExpired

    async def test_lost_lease_of_a_task_that_was_edited(self, store: Store, verb: Verb) -> None:
        lost = await store.lease("a")
        await store.edit("a", TaskEdit(priority=1), at(31))
        assert type(await store.settle(verb, lost, at(32))) is LeaseExpired

    async def test_after_nack(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        settled(await store.nack(leased, at(1), delay_seconds=60))
        before = await store.get("a", at(2))
        assert type(await store.settle(verb, leased, at(2))) is TaskNotLeased
        assert await store.get("a", at(2)) == before

    async def test_after_release(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        settled(await store.release(leased, at(1)))
        before = await store.get("a", at(2))
        assert type(await store.settle(verb, leased, at(2))) is TaskNotLeased
        assert await store.get("a", at(2)) == before

    async def test_never_leased(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        await store.enqueue("b")
        before = await store.get("b")
        of_another = replace(leased, task=before)
        assert type(await store.settle(verb, of_another)) is TaskNotLeased
        assert await store.get("b") == before

    async def test_unknown_task(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        unknown = replace(leased, task=replace(leased.task, id="unknown"))
        assert type(await store.settle(verb, unknown)) is TaskNotFound

    async def test_task_of_another_tenant(self, store: Store, other_store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        assert type(await other_store.settle(verb, leased)) is TaskNotFound
        assert await store.get("a") == leased.task

    async def test_wrong_token_of_a_done_task(self, store: Store, verb: Verb) -> None:
        leased = await store.finish("a")
        before = await store.get("a")
        assert type(await store.settle(verb, forged(leased))) is TaskNotLeased
        assert await store.get("a") == before

    async def test_after_forced_cancel(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        await store.cancel("a", at(1), force=True)
        before = await store.get("a", at(2))
        assert type(await store.settle(verb, leased, at(2))) is TaskNotLeased
        assert await store.get("a", at(2)) == before

    async def test_token_of_a_done_task_does_not_hold_a_new_one_of_its_id(self, store: Store, verb: Verb) -> None:
        old = await store.finish("a")
        new = await store.lease("a", at(1))
        if verb != "ack":
            assert type(await store.settle(verb, old, at(2))) is LeaseMismatch
        else:
            settled(await store.ack(old, at(2)))
        assert await store.get("a", at(2)) == new.task

    async def test_lease_holds_to_its_last_microsecond(self, store: Store, verb: Verb) -> None:
        leased = await store.lease("a")
        assert not isinstance(await store.settle(verb, leased, at(29.999999)), LeaseRefused)


class TestLostLease:
    """A lease that ran out makes the task reservable at once; no background job is needed for that."""

    async def test_next_reserve_gets_the_task(self, store: Store) -> None:
        first = await store.lease("a")
        second = await store.reserve_one(at(31), worker_id="other")
        assert (second.task.id, second.task.attempts, second.task.lease_owner) == ("a", 2, "other")
        assert second.lease_token != first.lease_token

    async def test_exactly_at_its_end_it_is_over(self, store: Store) -> None:
        await store.lease("a")
        assert await store.reserve_ids(at(29.999999)) == []
        assert await store.reserve_ids(at(30)) == ["a"]

    async def test_task_keeps_its_place(self, store: Store) -> None:
        await store.lease("first")
        await store.enqueue("second", at(10))
        reserved = await store.reserve(at(31), limit=2)
        assert ids(reserved.tasks) == ["first", "second"]
        assert reserved.tasks[0].task.available_at == T0

    async def test_reserve_of_several_queues_gets_the_task(self, store: Store) -> None:
        await store.lease("a", type="mail")
        assert await store.reserve_ids(at(31), queues=["other", QUEUE], types=["mail"]) == ["a"]

    async def test_what_happened_is_told_on_the_task(self, store: Store) -> None:
        await store.lease("a")
        task = await store.get("a", at(50))
        assert (task.status, task.attempts, task.lease_owner, task.lease_until) == (Status.READY, 1, None, None)
        assert (task.last_error, task.last_error_at) == ("lease expired", at(30))

    async def test_rare_type_is_found_behind_very_many_lost_leases(self, store: Store) -> None:
        await store.enqueue_many(*(new_task(type="common") for _ in range(1000)))
        await store.reserve(limit=1000, lease_seconds=1)
        await store.enqueue_many(*(new_task(type="common") for _ in range(200)))
        await store.reserve(limit=200, lease_seconds=1)
        await store.lease("rare", type="rare")
        assert await store.reserve_ids(at(31), types=["rare"]) == ["rare"]


class TestUsedUpAttempts:
    """A lease that ran out with the last attempt leaves a dead task, whoever looks first."""

    @pytest.fixture(autouse=True)
    async def task(self, store: Store) -> None:
        await store.lease("a", max_attempts=1)

    async def test_reserve_does_not_deliver_it(self, store: Store) -> None:
        assert await store.reserve_ids(at(30)) == []
        assert (await store.dead_letter("a", at(30))).reason == "lease expired"

    async def test_looking_at_the_task(self, store: Store) -> None:
        task = await store.get("a", at(50))
        assert (task.status, task.finished_at, task.attempts) == (Status.DEAD, at(30), 1)
        assert (task.last_error, task.last_error_at) == ("lease expired", at(30))

    async def test_looking_at_the_dead_letter(self, store: Store) -> None:
        letter = await store.dead_letter("a", at(50))
        assert (letter.reason, letter.failed_at, letter.task.status) == ("lease expired", at(30), Status.DEAD)

    async def test_listing_dead_letters(self, store: Store) -> None:
        assert await store.dead_ids(now=at(50)) == ["a"]

    async def test_listing_dead_letters_of_the_queue(self, store: Store) -> None:
        assert await store.dead_ids(DeadLetterFilter(queue=QUEUE), at(50)) == ["a"]

    async def test_listing_dead_tasks(self, store: Store) -> None:
        assert ids((await store.list_finished(TaskFilter(Status.DEAD), now=at(50))).items) == ["a"]

    async def test_listing_live_tasks(self, store: Store) -> None:
        assert (await store.list_live(now=at(29))).items != []
        assert (await store.list_live(now=at(30))).items == []

    async def test_requeue(self, store: Store) -> None:
        assert (await store.requeue("a", at(30))).requeued == 1
        assert await store.status("a", at(30)) is Status.READY

    async def test_requeue_of_many(self, store: Store) -> None:
        assert (await store.requeue_many(now=at(30))).requeued == 1

    async def test_purge(self, store: Store) -> None:
        assert await store.purge(now=at(30)) == 1

    async def test_deleting_the_dead_letter(self, store: Store) -> None:
        await store.delete_dead_letter("a", at(30))
        with pytest.raises(TaskNotFound):
            await store.get("a", at(30))


async def test_zero_max_attempts_are_unlimited(store: Store) -> None:
    await store.enqueue("a", max_attempts=0)
    for number in range(1, 8):
        assert (await store.reserve_one(at(number * 100))).task.attempts == number
    assert await store.status("a", at(1000)) is Status.READY


async def test_attempts_are_used_up_exactly(store: Store) -> None:
    await store.enqueue("a", max_attempts=3)
    assert [await store.reserve_ids(at(number * 100)) for number in range(4)] == [["a"], ["a"], ["a"], []]


class TestExtend:
    """The lease then ends that long from now, be it earlier or later than before."""

    async def test_later(self, store: Store) -> None:
        leased = await store.lease("a")
        outcome = extended(await store.extend(leased, at(20), lease_seconds=100))
        assert (outcome.id, outcome.lease_until, outcome.server_time) == ("a", at(120), at(20))
        assert await store.reserve_ids(at(119.999999)) == []
        assert await store.reserve_ids(at(120)) == ["a"]

    async def test_earlier(self, store: Store) -> None:
        leased = await store.lease("a")
        assert extended(await store.extend(leased, at(1), lease_seconds=2)).lease_until == at(3)
        assert await store.reserve_ids(at(3)) == ["a"]

    async def test_twice(self, store: Store) -> None:
        leased = await store.lease("a")
        extended(await store.extend(leased, at(20)))
        assert extended(await store.extend(leased, at(49), lease_seconds=1.5)).lease_until == at(50.5)
        assert (await store.get("a", at(49))).lease_until == at(50.5)

    async def test_nothing_else_changes(self, store: Store) -> None:
        leased = await store.lease("a")
        extended(await store.extend(leased, at(20), lease_seconds=100))
        expected = replace(leased.task, lease_until=at(120), updated_at=at(20))
        assert await store.get("a", at(20)) == expected

    async def test_extended_lease_is_settled_by_the_same_token(self, store: Store) -> None:
        leased = await store.lease("a")
        extended(await store.extend(leased, at(20), lease_seconds=100))
        settled(await store.ack(leased, at(110)))

    async def test_same_item_twice_in_a_batch(self, store: Store) -> None:
        leased = await store.lease("a")
        items = [extend_item(leased, 50), extend_item(leased, 60)]
        outcomes = await store.repository.extend_many(store.tenant, items, at(1))
        assert [extended(outcome).lease_until for outcome in outcomes] == [at(51), at(61)]
        assert (await store.get("a", at(1))).lease_until == at(61)


class TestBatch:
    """One bad item spoils only itself, and outcomes come back in input order."""

    @staticmethod
    def kinds(outcomes: object) -> list[str]:
        assert isinstance(outcomes, list)
        return [type(outcome).__name__ for outcome in outcomes]

    async def test_good_and_bad_items(self, store: Store) -> None:
        one, two, lost = await store.lease("1"), await store.lease("2"), await store.lease("3")
        await store.extend(one, T0, 100)
        await store.extend(two, T0, 100)
        unknown = replace(one, task=replace(one.task, id="unknown"))
        items = [ack_item(leased) for leased in (two, lost, forged(one), unknown, one)]
        outcomes = await store.repository.ack_many(store.tenant, items, at(50))
        assert self.kinds(outcomes) == ["Settled", "LeaseExpired", "LeaseMismatch", "TaskNotFound", "Settled"]
        assert [await store.status(name, at(50)) for name in "123"] == [Status.DONE, Status.DONE, Status.READY]

    async def test_good_and_bad_extends(self, store: Store) -> None:
        one, two = await store.lease("1"), await store.lease("2")
        items = [extend_item(forged(one), 5), extend_item(two, 60)]
        outcomes = await store.repository.extend_many(store.tenant, items, at(1))
        assert self.kinds(outcomes) == ["LeaseMismatch", "Extended"]

    async def test_thousand_items_of_every_outcome(self, store: Store) -> None:
        await store.enqueue_many(*(new_task() for _ in range(1000)))
        tasks = (await store.reserve(limit=1000)).tasks
        items = [ack_item(task if number % 2 else forged(task)) for number, task in enumerate(tasks)]
        outcomes = await store.repository.ack_many(store.tenant, items, at(1))
        assert self.kinds(outcomes) == ["LeaseMismatch", "Settled"] * 500

    async def test_same_ack_twice_is_done_once(self, store: Store) -> None:
        leased = await store.lease("a")
        outcomes = await store.repository.ack_many(store.tenant, [ack_item(leased, "1"), ack_item(leased, "1")], T0)
        assert self.kinds(outcomes) == ["Settled", "Settled"]
        assert len((await store.list_finished(TaskFilter(Status.DONE))).items) == 1
        assert len(await store.attempts("a")) == 1

    async def test_same_fail_twice_is_done_once(self, store: Store) -> None:
        leased = await store.lease("a")
        outcomes = await store.repository.fail_many(store.tenant, [fail_item(leased), fail_item(leased)], T0)
        assert self.kinds(outcomes) == ["Settled", "Settled"]
        assert await store.dead_ids() == ["a"]

    async def test_second_of_the_same_nack_finds_no_lease(self, store: Store) -> None:
        leased = await store.lease("a")
        items = [nack_item(leased, delay_seconds=5), nack_item(leased, delay_seconds=9)]
        outcomes = await store.repository.nack_many(store.tenant, items, T0)
        assert self.kinds(outcomes) == ["Settled", "TaskNotLeased"]
        assert (await store.get("a")).available_at == at(5)

    async def test_second_of_the_same_release_finds_no_lease(self, store: Store) -> None:
        leased = await store.lease("a")
        items = [release_item(leased), release_item(leased)]
        outcomes = await store.repository.release_many(store.tenant, items, T0)
        assert self.kinds(outcomes) == ["Settled", "TaskNotLeased"]
        assert (await store.get("a")).attempts == 0
