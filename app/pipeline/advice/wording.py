"""Numbers as people read them."""

import math

MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0
# What a person would set: nobody wants a lease of 18.37 seconds.
STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 10.0)
ROUNDING = 1e-9


def seconds(value: float, digits: int = 2) -> str:
    """A duration: `0.25 s`, `12 s`, `3.5 min`, `2 h`, `4.2 days`."""
    if value < 2 * MINUTE:
        return f"{significant(value, digits)} s"
    if value < 2 * HOUR:
        return f"{significant(value / MINUTE, digits)} min"
    if value < 2 * DAY:
        return f"{significant(value / HOUR, digits)} h"
    return f"{significant(value / DAY, digits)} days"


def significant(value: float, digits: int = 2) -> str:
    """So many digits that count, or the whole number if it has more."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)) + ROUNDING))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share as percents, `3 %`; what is there but little is never `0 %`, and what lacks little never `100 %`."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    digits = 1 if share < 0.1 or share > 0.99 else 0
    return f"{share * 100:.{digits}f}".removesuffix(".0") + " %"


def count(number: int, one: str, many: str) -> str:
    """A number with its noun: `1 task`, `1,200 tasks`."""
    return f"{number:,} {one if number == 1 else many}"


def round_up(value: float) -> float:
    """The next number that a person would choose, never less than the value."""
    if value <= 0:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in (*STEPS, 100.0) if step * scale >= value * (1 - ROUNDING))
