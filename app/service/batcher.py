"""Micro-batching: what arrives while a transaction is under way goes together in the next one.

No request waits for a timer to fill its batch. One that finds nothing under way runs with all that arrived in the same
round of the event loop, so an idle server adds no latency; under load the batches grow by themselves. Callers hear
their own outcome, after the commit.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.domain.errors import CallerGone, Contended, Unavailable

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")

IsGone = Callable[[], bool]

# A transaction that takes longer may be stuck, and holds up nobody else any more.
PATIENCE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """`in_flight`: transactions at once; `max_weight`: how much goes into one; `max_waiting`: how many may wait;
    `worthwhile`: how much must wait for a transaction beside another of the same key."""

    in_flight: int
    max_weight: int
    max_waiting: int
    worthwhile: int = 1


@dataclass(slots=True, eq=False)
class Entry(Generic[Request, Outcome]):
    """A caller's request, and where its outcome goes."""

    request: Request
    weight: int
    is_gone: IsGone
    outcome: "asyncio.Future[Outcome]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True, eq=False)
class Line(Generic[Request, Outcome]):
    """The requests of one key that wait, and how much they weigh."""

    entries: deque[Entry[Request, Outcome]] = field(default_factory=deque)
    weight: int = 0


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
        self._lines: OrderedDict[Hashable, Line[Request, Outcome]] = OrderedDict()
        self._waiting = 0
        self._starts_soon = False
        self._looks_again = False
        self._under_way: dict[asyncio.Task[None], Hashable] = {}
        # How many transactions of a key are under way, and when the last was begun.
        self._keys: Counter[Hashable] = Counter()
        self._begun_at: dict[Hashable, float] = {}

    async def submit(self, key: Hashable, request: Request, *, weight: int, is_gone: IsGone) -> Outcome:
        """The outcome of the request; raises `Unavailable` at once where too many wait already.

        A caller that `is_gone` when its turn comes is left out, which is told by `CallerGone`.
        """
        if self._waiting >= self._limits.max_waiting:
            raise Unavailable("The server is busy: too many requests wait.")
        entry: Entry[Request, Outcome] = Entry(request, weight, is_gone)
        line = self._lines.setdefault(key, Line())
        line.entries.append(entry)
        line.weight += weight
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
        while (found := self._next_line()) is not None:
            key, line = found
            batch = self._next_batch(line, look_after_callers=look_after_callers)
            if line.entries:
                # The other keys come first now.
                self._lines.move_to_end(key)
            else:
                del self._lines[key]
            if batch:
                self._begin(key, batch)

    def _next_line(self) -> tuple[Hashable, Line[Request, Outcome]] | None:
        """The line whose turn it is. What is little waits for the one of its key that is under way, to go together."""
        if not self._lines or len(self._under_way) >= self._limits.in_flight:
            return None
        late = asyncio.get_running_loop().time() - PATIENCE_SECONDS
        for key, line in self._lines.items():
            if line.weight >= self._limits.worthwhile or self._begun_at.get(key, late) <= late:
                return key, line
        self._look_again()
        return None

    def _look_again(self) -> None:
        """Looks after some time, in case that what is under way does not end."""

        def look() -> None:
            self._looks_again = False
            self._start(look_after_callers=True)

        if not self._looks_again:
            self._looks_again = True
            asyncio.get_running_loop().call_later(PATIENCE_SECONDS, look)

    def _begin(self, key: Hashable, batch: Sequence[Entry[Request, Outcome]]) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._settle(batch))
        self._under_way[task] = key
        self._keys[key] += 1
        self._begun_at[key] = loop.time()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        key = self._under_way.pop(task)
        self._keys[key] -= 1
        if not self._keys[key]:
            del self._keys[key], self._begun_at[key]
        self._start(look_after_callers=True)

    def _next_batch(self, line: Line[Request, Outcome], *, look_after_callers: bool) -> list[Entry[Request, Outcome]]:
        """The next of the line, without those that nobody waits for any more."""
        batch: list[Entry[Request, Outcome]] = []
        weight, entries = 0, line.entries
        while entries and (not batch or weight + entries[0].weight <= self._limits.max_weight):
            entry = entries.popleft()
            line.weight -= entry.weight
            self._waiting -= 1
            if entry.outcome.cancelled():
                continue
            if look_after_callers and entry.is_gone():
                entry.outcome.set_exception(CallerGone())
                continue
            batch.append(entry)
            weight += entry.weight
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
        if len(batch) > 1 and isinstance(error, Contended):
            # At once: the one that has to wait for somebody else's lock keeps nobody waiting.
            await asyncio.gather(*(self._settle([entry]) for entry in batch))
            return
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
