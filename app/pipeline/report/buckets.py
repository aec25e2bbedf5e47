"""Time in buckets: an hour each, or coarser when there would be more of them than a page can show."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

HOUR = 3600
DAY = 24 * HOUR
# Each is a multiple of an hour, and those under a week divide a day or are whole days: buckets begin at sensible times.
WIDTHS = (HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 28 * DAY)
MAX_BUCKETS = 240


@dataclass(frozen=True, slots=True)
class Span:
    """The time in which something ended, from the first to the last, and the width of its buckets."""

    first: datetime
    last: datetime
    width_seconds: int

    @classmethod
    def of(cls, first: datetime, last: datetime, max_buckets: int = MAX_BUCKETS) -> "Span":
        """With the finest buckets that are not too many."""
        width = next((w for w in WIDTHS if _count(first, last, w) <= max_buckets), WIDTHS[-1])
        while _count(first, last, width) > max_buckets:
            width *= 2
        return cls(first, last, width)

    @property
    def starts(self) -> list[datetime]:
        """The start of every bucket, empty ones included."""
        begin = int(self.first.timestamp()) // self.width_seconds * self.width_seconds
        count = _count(self.first, self.last, self.width_seconds)
        return [datetime.fromtimestamp(begin + i * self.width_seconds, UTC) for i in range(count)]

    @property
    def duration(self) -> timedelta:
        return self.last - self.first


def _count(first: datetime, last: datetime, width: int) -> int:
    return int(last.timestamp()) // width - int(first.timestamp()) // width + 1


def find_span(tasks: DataFrame, attempts: DataFrame) -> Span | None:
    """From the first to the last end of a task or an attempt, or None if nothing ended."""
    ends = tasks.select("finished_at").unionByName(attempts.select("finished_at"))
    row = ends.agg(
        F.unix_micros(F.min("finished_at")).alias("first"), F.unix_micros(F.max("finished_at")).alias("last")
    ).first()
    if row is None or row["first"] is None:
        return None
    return Span.of(_instant(row["first"]), _instant(row["last"]))


def bucket(finished_at: str, width_seconds: int) -> Column:
    """The start of the bucket that an instant falls into."""
    width = F.lit(width_seconds)
    return F.timestamp_seconds(F.floor(F.unix_seconds(finished_at) / width) * width)


def _instant(micros: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
