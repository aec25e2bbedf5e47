"""Callers that wait for work: parked in memory, with no database connection, and woken when there may be some."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain, islice

Key = tuple[str, str]

# Who gets something wakes the next, so a crowd comes to its tasks without coming all at once.
MOST_AT_ONCE = 16


class Waiter:
    """One caller that waits for work in some queues."""

    def __init__(self, keys: Collection[Key]) -> None:
        self.keys = keys
        # The last round of waking that it looked in.
        self.round = 0
        self._woken = asyncio.Event()

    @property
    def is_woken(self) -> bool:
        return self._woken.is_set()

    def wake(self) -> None:
        self._woken.set()

    def take_wake(self) -> None:
        """From here on a wake counts for the next look."""
        self._woken.clear()

    async def sleep(self, seconds: float) -> None:
        """Returns when there may be work, or after so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass


class Waiters:
    """All callers that wait in this process. A wake-up that is lost costs latency, never a task."""

    def __init__(self) -> None:
        # Dictionaries, because they keep order: who has waited longest is woken first.
        self._waiting: dict[Key, dict[Waiter, None]] = {}
        self._round = 0
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    @contextmanager
    def join(self, tenant_id: str, queues: Collection[str]) -> Iterator[Waiter]:
        """A waiter must have joined before it looks for work: what comes after the look then wakes it."""
        waiter = Waiter([(tenant_id, queue) for queue in dict.fromkeys(queues)])
        for key in waiter.keys:
            self._waiting.setdefault(key, {})[waiter] = None
        try:
            yield waiter
        finally:
            self._leave(waiter)

    def wake(self, tenant_id: str, queue: str, count: int = 1) -> int:
        """Wakes at most so many of those who wait for the queue, and tells how many: more would come for nothing."""
        self._round += 1
        asleep = (waiter for waiter in self._waiting.get((tenant_id, queue), ()) if not waiter.is_woken)
        woken = list(islice(asleep, min(count, MOST_AT_ONCE)))
        for waiter in woken:
            self._wake(waiter)
        return len(woken)

    def wake_everybody(self, tenant_id: str, queue: str) -> None:
        """Wakes all who wait for the queue: they had better see for themselves."""
        self._round += 1
        for waiter in self._waiting.get((tenant_id, queue), ()):
            self._wake(waiter)

    def pass_on(self, looker: Waiter) -> None:
        """Wakes another who waits for the same queues: what this one was woken for was not what it wants."""
        for key in looker.keys:
            others = (waiter for waiter in self._waiting[key] if not waiter.is_woken and waiter.round < looker.round)
            if (other := next(others, None)) is not None:
                other.round = looker.round
                other.wake()

    def wake_at(self, tenant_id: str, queues: Collection[str], seconds: float) -> None:
        """Wakes one of those who wait for the queues when something becomes due."""
        loop = asyncio.get_running_loop()
        for queue in queues:
            loop.call_later(max(0.0, seconds), self.wake, tenant_id, queue)

    def waited_for(self) -> dict[str, set[str]]:
        """The queues, by tenant, that somebody waits for."""
        found: dict[str, set[str]] = {}
        for tenant_id, queue in self._waiting:
            found.setdefault(tenant_id, set()).add(queue)
        return found

    def close(self) -> None:
        """Ends all waits: the process is about to end."""
        self._closed = True
        for waiter in set(chain.from_iterable(self._waiting.values())):
            waiter.wake()

    def _wake(self, waiter: Waiter) -> None:
        waiter.round = self._round
        waiter.wake()

    def _leave(self, waiter: Waiter) -> None:
        for key in waiter.keys:
            there = self._waiting[key]
            del there[waiter]
            if not there:
                del self._waiting[key]
            elif waiter.is_woken:
                # It was woken for something that it did not look for any more.
                self.wake(*key)
