"""Requeues that go on in the background, at a rate, whoever carries them on."""

import asyncio
from datetime import datetime

import pytest

from app.domain.commands import DeadLetterFilter
from app.domain.errors import OperationNotFound
from app.domain.task import Status
from app.domain.topology import Advanced, OperationStatus, Resting
from tests.conformance.steps import QUEUE, T0, Store, at
from tests.conformance.topology_steps import Emptied, Topology


async def advance(emptied: Emptied, now: datetime) -> int:
    """Carries on as long as there is something to do at that moment; how many went back."""
    moved = 0
    for _ in range(1000):
        advanced = await emptied.maintenance.advance_operation(now)
        if isinstance(advanced, Resting):
            return moved
        moved += sum(advanced.queues.values())
    raise AssertionError("it does not come to an end")


async def advance_until(emptied: Emptied, seconds: float, step: float = 0.25) -> list[int]:
    """Carries on at many moments; how many went back at each."""
    return [await advance(emptied, at(number * step)) for number in range(int(seconds / step) + 1)]


async def test_started_operation_has_moved_nothing(emptied: Emptied) -> None:
    await emptied.store.bury_many(3)
    operation = await emptied.topology.start_operation(5, now=at(1))
    assert (operation.status, operation.rate_per_second) == (OperationStatus.RUNNING, 5)
    assert (operation.requeued, operation.skipped, operation.remaining) == (0, 0, 3)
    assert (operation.created_at, operation.updated_at, operation.finished_at) == (at(1), at(1), None)
    assert await emptied.topology.operation(operation.id, at(2)) == operation


async def test_it_ends_when_all_are_back(emptied: Emptied) -> None:
    buried = await emptied.store.bury_many(5)
    operation = await emptied.topology.start_operation(100)
    assert sum(await advance_until(emptied, 2)) == 5
    done = await emptied.topology.operation(operation.id, at(3))
    assert (done.status, done.requeued, done.skipped, done.remaining) == (OperationStatus.DONE, 5, 0, 0)
    assert done.finished_at is not None
    assert sorted(await emptied.store.reserve_ids(at(3))) == sorted(buried)


async def test_what_it_tells_who_advances_it(emptied: Emptied) -> None:
    await emptied.store.bury("a", queue="one")
    await emptied.store.bury("b", queue="two")
    await emptied.store.bury("c", queue="two")
    await emptied.topology.start_operation(100)
    assert await emptied.maintenance.advance_operation(T0) == Advanced(emptied.tenant, {"one": 1, "two": 2})


async def test_nothing_to_advance(emptied: Emptied) -> None:
    assert await emptied.maintenance.advance_operation(T0) == Resting(None)


async def test_how_long_until_it_may_go_on(emptied: Emptied) -> None:
    await emptied.store.bury_many(2)
    await emptied.topology.start_operation(0.5)
    await emptied.maintenance.advance_operation(T0)
    assert await emptied.maintenance.advance_operation(at(0.5)) == Resting(1.5)


async def test_rate_that_is_next_to_nothing_holds_up_nobody(emptied: Emptied) -> None:
    await emptied.store.bury_many(4)
    slow = await emptied.topology.start_operation(1e-300, limit=2)
    await emptied.maintenance.advance_operation(T0)
    fast = await emptied.topology.start_operation(100, now=at(1))
    assert await advance(emptied, at(1)) == 3
    await advance(emptied, at(2))
    assert (await emptied.topology.operation(slow.id, at(2))).status is OperationStatus.RUNNING
    assert (await emptied.topology.operation(fast.id, at(2))).status is OperationStatus.DONE


async def test_operation_about_nothing_ends(emptied: Emptied) -> None:
    operation = await emptied.topology.start_operation(1)
    assert await advance(emptied, T0) == 0
    assert (await emptied.topology.operation(operation.id)).status is OperationStatus.DONE


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.5, 10.0])
async def test_rate_is_kept(emptied: Emptied, rate: float) -> None:
    await emptied.store.bury_many(60)
    await emptied.topology.start_operation(rate)
    moved = await advance_until(emptied, 4)
    for start in range(len(moved)):
        for end in range(start, len(moved)):
            assert sum(moved[start : end + 1]) <= rate * (end - start) * 0.25 + max(1.0, rate) + 1e-6
    # Looked at often enough it is reached, too.
    assert sum(moved) >= int(rate * 4)


async def test_rate_of_many_a_second(emptied: Emptied) -> None:
    await emptied.store.bury_many(600)
    await emptied.topology.start_operation(300)
    moved = await advance_until(emptied, 1, step=0.05)
    assert 300 <= sum(moved) <= 600


async def test_long_pause_is_not_made_up_for(emptied: Emptied) -> None:
    await emptied.store.bury_many(50)
    await emptied.topology.start_operation(5)
    await advance(emptied, T0)
    assert await advance(emptied, at(3600)) <= 5


async def test_limit(emptied: Emptied) -> None:
    await emptied.store.bury_many(10)
    operation = await emptied.topology.start_operation(4, limit=6)
    await advance_until(emptied, 10)
    done = await emptied.topology.operation(operation.id, at(10))
    assert (done.status, done.requeued, done.remaining) == (OperationStatus.DONE, 6, 4)


async def test_filters(emptied: Emptied) -> None:
    for queue, kind, reason in (("q", "t", "time out"), ("q", "t", "other"), ("q", "u", "time out"), ("r", "t", "x")):
        await emptied.store.bury(f"{queue}-{kind}-{reason[:2]}", reason=reason, queue=queue, type=kind)
    letters = DeadLetterFilter(queue="q", type="t", reason_contains="time", before=at(1), after=at(-1))
    operation = await emptied.topology.start_operation(100, letters)
    await advance_until(emptied, 1)
    assert (await emptied.topology.operation(operation.id, at(1))).requeued == 1
    assert await emptied.store.reserve_ids(at(2), queues=["q", "r"]) == ["q-t-ti"]


async def test_ids_as_filter(emptied: Emptied) -> None:
    for task_id in ("a", "b", "c"):
        await emptied.store.bury(task_id)
    operation = await emptied.topology.start_operation(100, DeadLetterFilter(ids=["a", "c", "unknown"]))
    await advance_until(emptied, 1)
    assert (await emptied.topology.operation(operation.id, at(1))).requeued == 2
    assert await emptied.store.dead_ids() == ["b"]


async def test_what_is_asked_of_the_requeue(emptied: Emptied) -> None:
    await emptied.store.bury("a", max_attempts=3)
    await emptied.topology.start_operation(100, reset_attempts=False, delay_seconds=60)
    await advance(emptied, at(5))
    task = await emptied.store.get("a", at(6))
    assert (task.status, task.available_at) == (Status.SCHEDULED, at(65))
    assert (task.attempts, task.max_attempts) == (1, 2)


async def test_stop(emptied: Emptied) -> None:
    await emptied.store.bury_many(10)
    operation = await emptied.topology.start_operation(2)
    await advance(emptied, T0)
    stopped = await emptied.topology.stop_operation(operation.id, at(1))
    assert (stopped.status, stopped.requeued, stopped.finished_at) == (OperationStatus.STOPPED, 2, at(1))
    assert sum(await advance_until(emptied, 10)) == 0
    assert (await emptied.topology.operation(operation.id, at(20))).remaining == 8


async def test_stopping_what_is_done_changes_nothing(emptied: Emptied) -> None:
    await emptied.store.bury("a")
    operation = await emptied.topology.start_operation(100)
    await advance_until(emptied, 1)
    done = await emptied.topology.operation(operation.id, at(2))
    assert await emptied.topology.stop_operation(operation.id, at(3)) == done


async def test_stopping_twice_is_stopping_once(emptied: Emptied) -> None:
    await emptied.store.bury("a")
    operation = await emptied.topology.start_operation(100)
    stopped = await emptied.topology.stop_operation(operation.id, at(1))
    assert await emptied.topology.stop_operation(operation.id, at(2)) == stopped


async def test_another_process_carries_it_on(emptied: Emptied) -> None:
    await emptied.store.bury_many(6)
    operation = await emptied.topology.start_operation(2)
    assert await advance(emptied, T0) == 2
    other = emptied.open()
    for second in (1, 2, 3, 4):
        while isinstance(await other.maintenance.advance_operation(at(second)), Advanced):
            pass
    done = await emptied.topology.operation(operation.id, at(5))
    assert (done.status, done.requeued, done.remaining) == (OperationStatus.DONE, 6, 0)


async def test_two_processes_at_once_keep_the_rate(emptied: Emptied) -> None:
    await emptied.store.bury_many(30)
    operation = await emptied.topology.start_operation(3)
    others = [emptied.open().maintenance for _ in range(4)]
    await asyncio.gather(*(other.advance_operation(T0) for other in others))
    assert (await emptied.topology.operation(operation.id)).requeued <= 3
    assert (await emptied.topology.counts())["ready"] <= 3


async def test_taken_ids_and_keys_are_skipped(emptied: Emptied) -> None:
    store = emptied.store
    await store.bury("same-id")
    await store.bury("same-key", dedupe_key="key")
    await store.bury("free")
    await store.enqueue("same-id")
    await store.enqueue("other", dedupe_key="key")
    operation = await emptied.topology.start_operation(100)
    await advance_until(emptied, 1)
    done = await emptied.topology.operation(operation.id, at(2))
    assert (done.status, done.requeued, done.skipped, done.remaining) == (OperationStatus.DONE, 1, 2, 2)
    assert await store.status("free", at(2)) is Status.READY


async def test_skipped_ones_do_not_count_towards_the_limit(emptied: Emptied) -> None:
    store = emptied.store
    for task_id in ("a", "b", "c"):
        await store.bury(task_id)
    await store.enqueue("a")
    operation = await emptied.topology.start_operation(1, limit=2)
    await advance_until(emptied, 5)
    done = await emptied.topology.operation(operation.id, at(5))
    assert (done.status, done.requeued, done.skipped) == (OperationStatus.DONE, 2, 1)


async def test_letters_that_die_later_are_not_taken(emptied: Emptied) -> None:
    await emptied.store.bury("before")
    operation = await emptied.topology.start_operation(100)
    await emptied.store.bury("after", at(1))
    await advance_until(emptied, 3)
    done = await emptied.topology.operation(operation.id, at(4))
    assert (done.status, done.requeued, done.remaining) == (OperationStatus.DONE, 1, 1)
    assert await emptied.store.dead_ids(now=at(4)) == ["after"]


async def test_task_that_dies_again_does_not_go_round_for_ever(emptied: Emptied) -> None:
    await emptied.store.bury("a")
    operation = await emptied.topology.start_operation(1)
    for second in range(5):
        await advance(emptied, at(second))
        for leased in (await emptied.store.reserve(at(second))).tasks:
            await emptied.store.fail(leased, at(second))
    done = await emptied.topology.operation(operation.id, at(6))
    assert (done.status, done.requeued) == (OperationStatus.DONE, 1)


async def test_letters_that_died_by_time_are_taken(emptied: Emptied) -> None:
    """Whether or not anybody has moved them."""
    await emptied.store.lease("a", max_attempts=1)
    operation = await emptied.topology.start_operation(100, now=at(31))
    await advance(emptied, at(32))
    assert (await emptied.topology.operation(operation.id, at(33))).requeued == 1


async def test_letter_that_is_purged_meanwhile(emptied: Emptied) -> None:
    await emptied.store.bury_many(4)
    operation = await emptied.topology.start_operation(1)
    await advance(emptied, T0)
    await emptied.store.purge(now=at(0.5))
    await advance_until(emptied, 5)
    done = await emptied.topology.operation(operation.id, at(6))
    assert (done.status, done.requeued, done.remaining) == (OperationStatus.DONE, 1, 0)


async def test_several_operations_go_on_side_by_side(emptied: Emptied) -> None:
    for queue in ("one", "two"):
        for _ in range(3):
            await emptied.store.bury(queue=queue)
    started = [await emptied.topology.start_operation(1, DeadLetterFilter(queue=queue)) for queue in ("one", "two")]
    assert await advance(emptied, T0) == 2
    await advance_until(emptied, 6)
    ended = [await emptied.topology.operation(operation.id, at(6)) for operation in started]
    assert [(each.status, each.requeued) for each in ended] == [(OperationStatus.DONE, 3)] * 2


async def test_dead_letters_of_a_deleted_queue(emptied: Emptied) -> None:
    await emptied.topology.put()
    await emptied.store.bury("a")
    await emptied.topology.delete()
    await emptied.topology.start_operation(100)
    await advance(emptied, at(1))
    assert await emptied.store.reserve_ids(at(2), queues=[QUEUE]) == ["a"]


async def test_unknown(topology: Topology) -> None:
    with pytest.raises(OperationNotFound):
        await topology.operation("unknown")
    with pytest.raises(OperationNotFound):
        await topology.stop_operation("unknown")


async def test_tenants_are_apart(emptied: Emptied, other_store: Store) -> None:
    await emptied.store.bury("a")
    stranger = Store(emptied.store.repository, other_store.tenant)
    await stranger.bury("a")
    operation = await emptied.topology.start_operation(100)
    with pytest.raises(OperationNotFound):
        await Topology(emptied.topology.repository, stranger.tenant).operation(operation.id)
    with pytest.raises(OperationNotFound):
        await Topology(emptied.topology.repository, stranger.tenant).stop_operation(operation.id)
    await advance_until(emptied, 1)
    assert await stranger.dead_ids() == ["a"]
