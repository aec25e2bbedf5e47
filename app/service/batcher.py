"""Micro-batching: what arrives while a transaction is under way goes together in the next one.

There is no timer. A request that finds nothing under way runs with all that arrived in the same round of the event
loop, so an idle server adds no latency; under load the batches grow by themselves. Callers hear their own outcome,
after the commit.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.domain.errors import CallerGone, Unavailable

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")

IsGone = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """`in_flight`: transactions at once; `max_weight`: how much goes into one; `max_waiting`: how many may wait."""

    in_flight: int
    max_weight: int
    max_waiting: int


@dataclass(slots=True, eq=False)
class Entry(Generic[Request, Outcome]):
    """A caller's request, and where its outcome goes."""

    request: Request
    weight: int
    is_gone: IsGone
    outcome: "asyncio.Future[Outcome]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Batcher(Generic[Request, Outcome]):
    """Runs requests of one kind together. Those of one key share a transaction; keys take turns.

    `run` gives an outcome for each request, in order; an exception among them is for that caller alone.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Request]], Awaitable[Sequence[Outcome | Exception]]],
        limits: BatchLimits,
        undelivered: Callable[[Request, Outcome], Awaitable[None]] | None = None,
    ) -> None:
        self._run = run
        self._limits = limits
        self._undelivered = undelivered
        self._lines: OrderedDict[Hashable, deque[Entry[Request, Outcome]]] = OrderedDict()
        self._waiting = 0
        self._starts_soon = False
        self._under_way: set[asyncio.Task[None]] = set()

    async def submit(self, key: Hashable, request: Request, *, weight: int, is_gone: IsGone) -> Outcome:
        """The outcome of the request; raises `Unavailable` at once where too many wait already.

        A caller that `is_gone` when its turn comes is left out, which is told by `CallerGone`.
        """
        if self._waiting >= self._limits.max_waiting:
            raise Unavailable("The server is busy: too many requests wait.")
        entry: Entry[Request, Outcome] = Entry(request, weight, is_gone)
        self._lines.setdefault(key, deque()).append(entry)
        self._waiting += 1
        self._start_soon()
        return await entry.outcome

    async def drain(self) -> None:
        """Returns when nothing waits or is under way any more."""
        while self._waiting or self._under_way:
            await (asyncio.wait(self._under_way) if self._under_way else asyncio.sleep(0))

    def _start_soon(self) -> None:
        # Not at once: the first of many that arrive together would go alone, and a transaction costs as much for one.
        if not self._starts_soon:
            self._starts_soon = True
            asyncio.get_running_loop().call_soon(self._start_round)

    def _start_round(self) -> None:
        self._starts_soon = False
        self._start()

    def _start(self, *, look_after_callers: bool = False) -> None:
        """Puts as many batches under way as may be."""
        while self._lines and len(self._under_way) < self._limits.in_flight:
            batch = self._next_batch(look_after_callers=look_after_callers)
            if batch:
                task = asyncio.get_running_loop().create_task(self._settle(batch))
                self._under_way.add(task)
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._start(look_after_callers=True)

    def _next_batch(self, *, look_after_callers: bool) -> list[Entry[Request, Outcome]]:
        """The next of the key whose turn it is, without those that nobody waits for any more."""
        key, line = self._lines.popitem(last=False)
        batch: list[Entry[Request, Outcome]] = []
        weight = 0
        while line and (not batch or weight + line[0].weight <= self._limits.max_weight):
            entry = line.popleft()
            self._waiting -= 1
            if entry.outcome.cancelled():
                continue
            if look_after_callers and entry.is_gone():
                entry.outcome.set_exception(CallerGone())
                continue
            batch.append(entry)
            weight += entry.weight
        if line:
            self._lines[key] = line
        return batch

    async def _settle(self, batch: Sequence[Entry[Request, Outcome]]) -> None:
        try:
            outcomes = await self._run([entry.request for entry in batch])
        except Exception as error:
            await self._settle_failed(batch, error)
            return
        for entry, outcome in zip(batch, outcomes, strict=True):
            await self._deliver(entry, outcome)

    async def _settle_failed(self, batch: Sequence[Entry[Request, Outcome]], error: Exception) -> None:
        """A bad item spoils only itself: each has another try alone, unless it is the database that fails."""
        if len(batch) > 1 and not isinstance(error, Unavailable):
            for entry in batch:
                await self._settle([entry])
            return
        for entry in batch:
            if not entry.outcome.cancelled():
                entry.outcome.set_exception(error)

    async def _deliver(self, entry: Entry[Request, Outcome], outcome: Outcome | Exception) -> None:
        if isinstance(outcome, Exception):
            if not entry.outcome.cancelled():
                entry.outcome.set_exception(outcome)
        elif not entry.outcome.cancelled():
            entry.outcome.set_result(outcome)
        elif self._undelivered is not None:
            await self._undelivered(entry.request, outcome)
