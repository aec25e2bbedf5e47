"""Where the ready tasks of a queue begin, remembered for a moment.

What was taken leaves traces in PostgreSQL's indexes for as long as anybody's snapshot may see it. A reserve that walks
through them becomes the slower the more was taken; one that begins where the last one ended does not.

A start holds until something comes back to the queue, which is counted in the database, and never longer than
`LIFE_SECONDS`: a claim that was taken back, or a transaction that took its time to commit, is not counted.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.repository.connection import Row

LIFE_SECONDS = 0.2
# What was accepted so lately may not have been there to be seen.
LATE = timedelta(seconds=0.1)
MOST = 1000

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Start:
    """In a queue to which nothing came back since: as of `looked_until` nothing was overdue in it, nothing was ready
    that is more urgent than `priority`, and nothing as urgent that stands before `at` and `seq`."""

    queue_id: int
    returns: int
    priority: int
    at: datetime
    seq: int
    looked_until: datetime

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


class Starts:
    """The starts of the queues of one replica, by tenant and name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starts: dict[Key, tuple[Start, float]] = {}

    def find(self, key: Key) -> Start | None:
        start, ends_at = self._starts.get(key, (None, 0.0))
        return start if self._clock() < ends_at else None

    def learn(self, key: Key, first: Row, last: Row, given: Start | None) -> None:
        """Remembers where a claim ended; one that began at a start leaves that start's life as it was."""
        start = _start(first, last)
        goes_on = given is not None and (given.queue_id, given.returns) == (start.queue_id, start.returns)
        ends_at = self._starts.get(key, (None, 0.0))[1] if goes_on else self._clock() + LIFE_SECONDS
        if len(self._starts) >= MOST:
            self._starts.clear()
        self._starts[key] = (start, ends_at)

    def forget(self, key: Key) -> None:
        self._starts.pop(key, None)


def _start(first: Row, last: Row) -> Start:
    looked_until = first["now"] - LATE
    start = Start(
        queue_id=first["queue_id"],
        returns=first["returns"],
        priority=last["priority"],
        at=last["available_at"] or last["created_at"],
        seq=last["seq"],
        looked_until=looked_until,
    )
    return start if start.at <= looked_until else replace(start, at=looked_until, seq=0)
