"""A rate, kept by one partition: its share of the job's."""

import time
from collections.abc import Callable

# A batch is what may be sent in this time, so that a slow rate is a steady one.
BEAT_SECONDS = 1.0


class Pace:
    """Lets rows through at a share of the rate; without one, at once."""

    def __init__(
        self,
        share_per_second: float | None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share = share_per_second
        self._sleep = sleep
        self._clock = clock
        self._free_at = clock()

    def limit_rows(self, rows: int) -> int:
        """How many rows a batch may have, of so many."""
        return rows if self._share is None else max(1, min(rows, int(self._share * BEAT_SECONDS)))

    def take(self, rows: int) -> None:
        """Returns when so many rows may be sent."""
        if self._share is None:
            return
        self.rest()
        self._free_at = max(self._free_at, self._clock()) + rows / self._share

    def rest(self) -> None:
        """Waits for the time that was taken: the partition that comes next on this core begins without a debt."""
        if (seconds := self._free_at - self._clock()) > 0:
            self._sleep(seconds)
