"""Callers that wait: who is woken, by what, and what becomes of a wake that nobody uses."""

import asyncio
from contextlib import ExitStack

import pytest

from app.service.waiters import MOST_AT_ONCE, Waiter, Waiters

# So long nobody sleeps here: a test that waits for its end has failed.
LONG = 60.0


@pytest.fixture
def waiters() -> Waiters:
    return Waiters()


def woken(*waiting: Waiter) -> list[bool]:
    return [waiter.is_woken for waiter in waiting]


async def test_wake_before_sleep_is_not_lost(waiters: Waiters) -> None:
    """Whoever joined before looking hears of what came after the look."""
    with waiters.join("tenant", ["work"]) as waiter:
        waiter.take_wake()
        waiters.wake("tenant", "work")
        async with asyncio.timeout(1):
            await waiter.sleep(LONG)
        assert waiter.is_woken


async def test_wake_ends_a_sleep(waiters: Waiters) -> None:
    with waiters.join("tenant", ["work"]) as waiter:
        asyncio.get_running_loop().call_soon(waiters.wake, "tenant", "work")
        async with asyncio.timeout(1):
            await waiter.sleep(LONG)


async def test_sleep_ends_by_itself(waiters: Waiters) -> None:
    with waiters.join("tenant", ["work"]) as waiter:
        await waiter.sleep(0.001)
        assert not waiter.is_woken


def test_taken_wake_counts_no_more(waiters: Waiters) -> None:
    with waiters.join("tenant", ["work"]) as waiter:
        waiters.wake("tenant", "work")
        waiter.take_wake()
        assert not waiter.is_woken
        waiters.wake("tenant", "work")
        assert waiter.is_woken


def test_only_those_who_wait_for_the_queue_are_woken(waiters: Waiters) -> None:
    with (
        waiters.join("tenant", ["work", "other"]) as both,
        waiters.join("tenant", ["other"]) as other,
        waiters.join("stranger", ["work"]) as stranger,
    ):
        waiters.wake("tenant", "work", 10)
        assert woken(both, other, stranger) == [True, False, False]


def test_as_many_are_woken_as_there_are_tasks(waiters: Waiters) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(waiters.join("tenant", ["work"])) for _ in range(4)]
        waiters.wake("tenant", "work", 2)
        assert woken(*waiting) == [True, True, False, False]


def test_first_come_first_woken(waiters: Waiters) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(waiters.join("tenant", ["work"])) for _ in range(3)]
        for count in (1, 2, 3):
            waiters.wake("tenant", "work")
            assert woken(*waiting) == [True] * count + [False] * (3 - count)


def test_waking_more_than_there_are_is_harmless(waiters: Waiters) -> None:
    waiters.wake("tenant", "work", 5)
    with waiters.join("tenant", ["work"]) as waiter:
        assert not waiter.is_woken
        waiters.wake("tenant", "work", 5)
        assert waiter.is_woken


def test_crowd_is_not_woken_all_at_once(waiters: Waiters) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(waiters.join("tenant", ["work"])) for _ in range(MOST_AT_ONCE + 5)]
        waiters.wake("tenant", "work", 1000)
        assert woken(*waiting) == [True] * MOST_AT_ONCE + [False] * 5


def test_wake_for_what_one_does_not_want_goes_round_once(waiters: Waiters) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(waiters.join("tenant", ["work"])) for _ in range(3)]
        waiters.wake("tenant", "work")
        for number, waiter in enumerate(waiting):
            assert woken(*waiting) == [number == other for other in range(3)]
            waiter.take_wake()
            waiters.pass_on(waiter)
        assert woken(*waiting) == [False, False, False]
        waiters.wake("tenant", "work")
        assert woken(*waiting) == [True, False, False]


def test_wake_is_not_passed_on_to_those_who_wait_for_other_queues(waiters: Waiters) -> None:
    with waiters.join("tenant", ["a"]) as first, waiters.join("tenant", ["b"]) as second:
        waiters.wake("tenant", "a")
        first.take_wake()
        waiters.pass_on(first)
        assert woken(first, second) == [False, False]


def test_woken_one_that_leaves_passes_the_wake_on(waiters: Waiters) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(waiters.join("tenant", ["work"]))
        with waiters.join("tenant", ["work"]) as second, waiters.join("tenant", ["work"]) as third:
            waiters.wake("tenant", "work")
            assert woken(first, second, third) == [True, False, False]
            stack.close()
            assert woken(second, third) == [True, False]


def test_wake_that_was_used_is_not_passed_on(waiters: Waiters) -> None:
    with waiters.join("tenant", ["work"]) as second, ExitStack() as stack:
        first = stack.enter_context(waiters.join("tenant", ["work"]))
        waiters.wake("tenant", "work", 2)
        second.take_wake()
        first.take_wake()
        stack.close()
        assert not second.is_woken


def test_wake_is_passed_on_to_those_who_wait_for_any_of_its_queues(waiters: Waiters) -> None:
    with ExitStack() as stack:
        both = stack.enter_context(waiters.join("tenant", ["a", "b"]))
        with waiters.join("tenant", ["b"]) as second:
            waiters.wake("tenant", "a")
            assert woken(both, second) == [True, False]
            stack.close()
            assert second.is_woken


def test_leaving_by_an_exception_is_leaving(waiters: Waiters) -> None:
    def fail(second: Waiter) -> None:
        with waiters.join("tenant", ["work"]):
            waiters.wake("tenant", "work", 2)
            second.take_wake()
            raise RuntimeError

    with waiters.join("tenant", ["work"]) as second:
        with pytest.raises(RuntimeError):
            fail(second)
        assert second.is_woken


def test_queue_that_is_named_twice_is_waited_for_once(waiters: Waiters) -> None:
    with waiters.join("tenant", ["work", "work"]):
        assert waiters.waited_for() == {"tenant": {"work"}}
    assert waiters.waited_for() == {}


def test_waited_for(waiters: Waiters) -> None:
    assert waiters.waited_for() == {}
    with waiters.join("tenant", ["a", "b"]), waiters.join("stranger", ["a"]):
        assert waiters.waited_for() == {"tenant": {"a", "b"}, "stranger": {"a"}}
    assert waiters.waited_for() == {}


async def test_close_ends_all_waits(waiters: Waiters) -> None:
    with waiters.join("tenant", ["a", "b"]) as first, waiters.join("stranger", ["a"]) as second:
        was_closed = waiters.is_closed
        waiters.close()
        assert (was_closed, waiters.is_closed) == (False, True)
        async with asyncio.timeout(1):
            await asyncio.gather(first.sleep(LONG), second.sleep(LONG))


async def test_wake_at(waiters: Waiters) -> None:
    with waiters.join("tenant", ["a", "b"]) as waiter:
        waiters.wake_at("tenant", ["b"], 0.001)
        assert not waiter.is_woken
        async with asyncio.timeout(1):
            await waiter.sleep(LONG)
        assert waiter.is_woken


async def test_wake_at_a_moment_that_has_passed(waiters: Waiters) -> None:
    with waiters.join("tenant", ["a"]) as waiter:
        waiters.wake_at("tenant", ["a"], -5)
        async with asyncio.timeout(1):
            await waiter.sleep(LONG)


async def test_wake_at_finds_those_who_came_since(waiters: Waiters) -> None:
    with waiters.join("tenant", ["a"]):
        waiters.wake_at("tenant", ["a"], 0.001)
    with waiters.join("tenant", ["a"]) as waiter:
        async with asyncio.timeout(1):
            await waiter.sleep(LONG)
