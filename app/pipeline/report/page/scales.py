"""From values to places on a plot, and where the lines of its grid are."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

HOUR = 3600
DAY = 24 * HOUR
TIME_STEPS = (HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY)
# Durations that people think in, for an axis of powers.
NOTCHES = (
    1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 28 * 86400.0,
    365 * 86400.0, 3650 * 86400.0,
)  # fmt: skip
# A Monday: weeks begin there.
MONDAY = datetime(1970, 1, 5)


@dataclass(frozen=True, slots=True)
class Scale:
    """From 0 at `low` to 1 at `high`, evenly or by powers; `ticks` are where the grid is."""

    low: float
    high: float
    ticks: Sequence[float]
    by_powers: bool = False

    def place(self, value: float) -> float:
        """Where a value is, between 0 and 1."""
        if self.by_powers:
            value = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            value = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, value))


def linear(highest: float, lines: int = 4) -> Scale:
    """From 0 to a round number that nothing exceeds."""
    if highest <= 0:
        return Scale(0.0, 1.0, [0.0, 1.0])
    rough = highest / lines
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * (1 - 1e-9))
    top = math.ceil(highest / step - 1e-9)
    return Scale(0.0, step * top, [step * i for i in range(top + 1)])


def powers(values: Iterable[float], most: int = 5) -> Scale:
    """Of durations: from the notch below the smallest to the notch above the largest."""
    present = [value for value in values if value > 0]
    low, high = (min(present), max(present)) if present else (0.1, 1.0)
    below = max((notch for notch in NOTCHES if notch <= low), default=NOTCHES[0])
    above = min((notch for notch in NOTCHES if notch >= high and notch > below), default=NOTCHES[-1])
    between = [notch for notch in NOTCHES if below <= notch <= above]
    stride = math.ceil(len(between) / (most + 1))
    return Scale(below, above, between[::stride], by_powers=True)


def time_ticks(first: datetime, last: datetime, most: int = 8) -> list[datetime]:
    """Round times within the span, not more than so many; weeks begin on Mondays."""
    length = (last - first).total_seconds()
    step = next((step for step in TIME_STEPS if length / step <= most), None)
    if step is None:
        step = math.ceil(length / most / (364 * DAY)) * 364 * DAY
    origin = MONDAY.replace(tzinfo=first.tzinfo)
    start = math.ceil((first - origin).total_seconds() / step)
    end = math.floor((last - origin).total_seconds() / step)
    return [origin + timedelta(seconds=step * i) for i in range(start, end + 1)]
