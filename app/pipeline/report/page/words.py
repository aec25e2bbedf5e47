"""Numbers, times and names as people read them."""

import math
from datetime import datetime, timedelta

MISSING = "–"
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
# From so many of a unit on it reads better than the smaller one: 90 s, but 2 min.
ENOUGH = {"d": 2.0, "h": 2.0, "min": 2.0}


def number(value: float | None) -> str:
    """`1,234,567`."""
    return MISSING if value is None else f"{value:,.0f}"


def count(value: int, one: str, many: str | None = None) -> str:
    """`1 task`, `1,200 tasks`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def rate(value: float) -> str:
    """`1,200`, `12`, `1.2`, `0.03`: how many there are of something in a time."""
    return f"{value:,.0f}" if value >= 9.5 else _significant(value)


def percent(share: float | None) -> str:
    """`12 %`, `99.95 %`; what is there but little is never `0 %`, and what lacks little never `100 %`."""
    if share is None:
        return MISSING
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    rest = min(share, 1 - share)
    digits = 0 if rest == 0 else 2 if rest < 0.001 else 1 if rest < 0.1 else 0
    told = f"{share * 100:.{digits}f}"
    return f"{told.rstrip('0').rstrip('.') if '.' in told else told} %"


def seconds(value: float | None) -> str:
    """`250 ms`, `1.2 s`, `90 s`, `3 min`, `2.5 h`, `4 d`."""
    if value is None:
        return MISSING
    if value == 0:
        return "0 s"
    for size, unit in UNITS:
        # What rounds up to the unit is told in it: 1 s, not 1000 ms.
        if value == size or value >= size * ENOUGH.get(unit, 0.9995):
            return f"{_significant(value / size)} {unit}"
    return "< 1 µs"


def size(value: float | None) -> str:
    """`512 B`, `1.5 MiB`."""
    if value is None:
        return MISSING
    for unit, name in BYTES:
        if value >= unit:
            return f"{_significant(value / unit)} {name}"
    return f"{value:,.0f} B"


def instant(at: datetime) -> str:
    """`2 Mar 2026 09:05 UTC`."""
    return f"{at.day} {at:%b %Y %H:%M} UTC"


def moment(at: datetime) -> str:
    """`Mon 2 Mar 09:05`."""
    return f"{at:%a} {at.day} {at:%b %H:%M}"


def bucket(start: datetime, width_seconds: int) -> str:
    """`Mon 2 Mar 09:00–10:00`, `Mon 2 Mar`, `2 Mar – 8 Mar`."""
    end = start + timedelta(seconds=width_seconds)
    if width_seconds < 86400:
        return f"{moment(start)}–{end:%H:%M}"
    if width_seconds == 86400:
        return f"{start:%a} {start.day} {start:%b}"
    last = end - timedelta(days=1)
    return f"{start.day} {start:%b} – {last.day} {last:%b}"


def width(width_seconds: int) -> str:
    """`hour`, `6 hours`, `day`, `7 days`: what a bucket is."""
    for unit, name in ((86400, "day"), (3600, "hour")):
        if width_seconds % unit == 0:
            amount = width_seconds // unit
            return name if amount == 1 else f"{amount} {name}s"
    return seconds(width_seconds)


def duration(length: timedelta) -> str:
    """`14 days`, `5 hours`, `3 minutes`: how long something went on, in words."""
    total = length.total_seconds()
    for unit, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if total >= 1.95 * unit or (total >= 0.95 * unit and unit < 86400):
            return count(round(total / unit), name)
    return "a moment"


def name(text: str, none: str = "(no type)") -> str:
    """A name as it is; the empty one is told as such."""
    return text or none


def short(text: str, longest: int) -> str:
    """A text that is cut is told to be."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _significant(value: float) -> str:
    """Two digits that count, or the whole number if it has more."""
    digits = max(0, 1 - math.floor(math.log10(abs(value)) + 1e-9)) if value else 0
    told = f"{value:,.{digits}f}"
    return told.rstrip("0").rstrip(".") if "." in told else told
