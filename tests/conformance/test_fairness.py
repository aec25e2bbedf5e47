"""Among equal priorities the named queues take turns; the highest priority wins, whatever its queue."""

from collections import Counter
from collections.abc import Sequence

import pytest

from app.service.turns import Turns
from tests.conformance.steps import Store, new_task

QUEUES = ("a", "b", "c")


async def fill(store: Store, counts: dict[str, int], priority: int = 20) -> None:
    tasks = [new_task(queue=queue, priority=priority) for queue, count in counts.items() for _ in range(count)]
    await store.enqueue_many(*tasks)


async def served(store: Store, turns: Turns, limit: int, queues: Sequence[str] = QUEUES) -> list[str]:
    """The queues of what one reserve gets, in order."""
    reserved = await store.reserve(queues=turns.order(store.tenant, queues), limit=limit)
    taken = [task.task.queue for task in reserved.tasks]
    if taken:
        turns.served(store.tenant, queues, taken[-1])
    return taken


async def test_one_by_one(store: Store) -> None:
    await fill(store, {"a": 10, "b": 10, "c": 10})
    turns = Turns()
    taken = [queue for _ in range(9) for queue in await served(store, turns, 1)]
    assert taken == ["a", "b", "c"] * 3


@pytest.mark.parametrize("limit", [2, 3, 5, 7])
async def test_several_at_once(store: Store, limit: int) -> None:
    await fill(store, {"a": 40, "b": 40, "c": 40})
    turns = Turns()
    for _ in range(4):
        counts = Counter(await served(store, turns, limit))
        assert counts.total() == limit
        assert max(counts.values()) - min(counts[queue] for queue in QUEUES) <= 1


async def test_turns_go_on_from_one_reserve_to_the_next(store: Store) -> None:
    await fill(store, {"a": 10, "b": 10, "c": 10})
    turns = Turns()
    taken = [queue for limit in (2, 2, 2, 3) for queue in await served(store, turns, limit)]
    assert taken == ["a", "b", "c"] * 3


async def test_queue_with_very_many_tasks_starves_none(store: Store) -> None:
    await fill(store, {"a": 1000})
    await fill(store, {"b": 3, "c": 3})
    turns = Turns()
    taken = [queue for _ in range(9) for queue in await served(store, turns, 1)]
    assert Counter(taken) == {"a": 3, "b": 3, "c": 3}


async def test_queue_with_very_many_tasks_starves_none_of_a_large_reserve(store: Store) -> None:
    await fill(store, {"a": 1000})
    await fill(store, {"b": 3, "c": 3})
    assert Counter(await served(store, Turns(), 9)) == {"a": 3, "b": 3, "c": 3}


async def test_turn_of_an_empty_queue_is_not_waited_for(store: Store) -> None:
    await fill(store, {"a": 5, "c": 5})
    turns = Turns()
    assert [queue for _ in range(6) for queue in await served(store, turns, 1)] == ["a", "c"] * 3
    assert Counter(await served(store, turns, 10)) == {"a": 2, "c": 2}


async def test_highest_priority_wins_whosever_turn_it_is(store: Store) -> None:
    await fill(store, {"a": 3, "b": 3})
    await fill(store, {"c": 3}, priority=21)
    turns = Turns()
    taken = [queue for _ in range(5) for queue in await served(store, turns, 1)]
    assert taken[:3] == ["c", "c", "c"]
    assert sorted(taken[3:]) == ["a", "b"]


async def test_turns_within_each_priority(store: Store) -> None:
    for priority in (30, 10):
        await fill(store, {"a": 2, "b": 2}, priority)
    assert await served(store, Turns(), 8) == ["a", "b"] * 4


async def test_order_within_a_queue_is_exact(store: Store) -> None:
    for queue in ("a", "b"):
        await store.enqueue_many(*(new_task(f"{queue}{number}", queue=queue) for number in range(4)))
    assert await store.reserve_ids(queues=["a", "b"]) == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


async def test_types_do_not_give_a_queue_more_turns(store: Store) -> None:
    for kind in ("x", "y"):
        await store.enqueue_many(*(new_task(queue="a", type=kind) for _ in range(10)))
    await store.enqueue_many(*(new_task(queue="b", type="x") for _ in range(10)))
    reserved = await store.reserve(queues=["a", "b"], types=["x", "y"], limit=8)
    assert Counter(task.task.queue for task in reserved.tasks) == {"a": 4, "b": 4}


def test_turns_are_remembered_by_tenant_and_by_the_queues_that_are_asked_for() -> None:
    turns = Turns()
    turns.served("tenant", QUEUES, "a")
    assert turns.order("tenant", QUEUES) == ["b", "c", "a"]
    assert turns.order("stranger", QUEUES) == list(QUEUES)
    assert turns.order("tenant", ("a", "b")) == ["a", "b"]
    turns.served("tenant", QUEUES, "c")
    assert turns.order("tenant", QUEUES) == list(QUEUES)


def test_queue_that_is_named_twice_has_one_turn() -> None:
    turns = Turns()
    assert turns.order("tenant", ("a", "b", "a")) == ["a", "b"]
    turns.served("tenant", ("a", "b", "a"), "a")
    assert turns.order("tenant", ("a", "b", "a")) == ["b", "a"]


def test_one_queue_is_always_first() -> None:
    turns = Turns()
    turns.served("tenant", ("a",), "a")
    assert turns.order("tenant", ("a",)) == ["a"]
