"""Where the ready tasks of a lane begin, remembered for a moment.

What was taken leaves traces in PostgreSQL's indexes for as long as anybody's snapshot may see it. A reserve that walks
through them becomes the slower the more was taken; one that begins where the last one ended does not.

A start holds until something comes back to the queue, which is counted in the database, and never longer than
`LIFE_SECONDS`: a claim that was taken back is not counted.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

LIFE_SECONDS = 0.2
# What was accepted so lately may not have been there to be seen.
LATE = timedelta(seconds=0.1)
MOST = 10_000
# Less urgent than any task.
BELOW_ALL = -(2**31) - 1

# A lane: the tenant, the queue by name, and the type, if it is one type only.
Key = tuple[str, str, str | None]
# The priority, due time and number of a task: what the order in a lane is made of.
Position = tuple[int, datetime, int]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Start:
    """In a lane to whose queue nothing came back since: as of `looked_until` nothing was overdue in the queue, nothing
    was ready that is more urgent than `priority`, and nothing as urgent that stands before `at` and `seq`."""

    queue_id: int
    returns: int
    priority: int
    at: datetime
    seq: int
    looked_until: datetime
    # By the clock of the process.
    lives_until: float = 0.0

    def parameters(self) -> dict[str, object]:
        return {
            "start_queue_id": self.queue_id,
            "start_returns": self.returns,
            "start_priority": self.priority,
            "start_at": self.at,
            "start_seq": self.seq,
            "looked_until": self.looked_until,
        }


NO_START: dict[str, object] = dict.fromkeys(
    ("start_queue_id", "start_returns", "start_priority", "start_at", "start_seq", "looked_until")
)


def start_behind(queue_id: int, returns: int, now: datetime, position: Position | None) -> Start:
    """The start of a lane in which nothing was left up to a position, or nothing at all."""
    looked_until = now - LATE
    priority, at, seq = position or (BELOW_ALL, looked_until, 0)
    if at > looked_until:
        at, seq = looked_until, 0
    return Start(queue_id, returns, priority, at, seq, looked_until)


@dataclass(frozen=True, slots=True)
class LaneEnd:
    """Where a claim left a lane that it began at the given start, and whether it leased anything of it."""

    key: Key
    start: Start
    given: Start | None
    leased: bool


class Memory(Generic[Value]):
    """What one replica knows of some lanes, each for a moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Key, tuple[Value, float]] = {}

    def find(self, key: Key) -> Value | None:
        value, lives_until = self._known.get(key, (None, 0.0))
        return value if self._clock() < lives_until else None

    def keep(self, key: Key, value: Value) -> None:
        self._keep(key, value, self._new_life())

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)

    def _new_life(self) -> float:
        return self._clock() + LIFE_SECONDS

    def _keep(self, key: Key, value: Value, lives_until: float) -> None:
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = (value, lives_until)


class Starts(Memory[Start]):
    """The starts of lanes."""

    def learn(self, key: Key, start: Start, given: Start | None) -> None:
        """Remembers where a claim ended. What began at a start lives no longer than that one; who has looked at
        everything since knows better."""
        goes_on = given is not None and (given.queue_id, given.returns) == (start.queue_id, start.returns)
        lives_until = given.lives_until if given is not None and goes_on else self._new_life()
        if self._known.get(key, (None, 0.0))[1] <= lives_until:
            self._keep(key, replace(start, lives_until=lives_until), lives_until)
