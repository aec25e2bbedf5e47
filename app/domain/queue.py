"""The queue: what it decides for the tasks in it that do not say otherwise, and whether it is there at all."""

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.domain.backoff import Backoff

HISTORY_AT_LEAST = timedelta(hours=1)
ROUNDING = 1e-6
LONGEST_SECONDS = 100 * 365 * 86400.0


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What can be set; the defaults are those of a queue that nobody declared."""

    topic: str | None = None
    exclusive: bool = False
    keep_alive_seconds: float = 60.0
    max_attempts: int = 5
    lease_seconds: float = 30.0
    max_lease_seconds: float = 43200.0
    backoff: Backoff = field(default_factory=Backoff)
    rate_per_second: float | None = None
    concurrency_limit: int | None = None
    paused: bool = False
    history_days: float | None = 14.0
    dlq_days: float | None = None

    def keep_history_until(self, finished_at: datetime) -> datetime | None:
        """When a finished task may go; never within an hour, so that a lost reply can be asked for again."""
        return None if self.history_days is None else finished_at + max(_days(self.history_days), HISTORY_AT_LEAST)


@dataclass(frozen=True, slots=True)
class Queue:
    """One life of a queue: a new one of the same name has another id, and none of its tasks."""

    id: int
    name: str
    declared: bool
    settings: QueueSettings
    keep_alive_until: datetime | None
    rate_left: float
    rate_left_at: datetime
    created_at: datetime
    updated_at: datetime

    def is_alive(self, now: datetime) -> bool:
        """An exclusive queue is gone the moment its time is over, whether or not anybody has noticed."""
        return self.keep_alive_until is None or self.keep_alive_until > now

    @property
    def is_limited(self) -> bool:
        return self.settings.rate_per_second is not None or self.settings.concurrency_limit is not None


@dataclass(frozen=True, slots=True)
class RateBucket:
    """How many deliveries a rate allows: it fills by the rate up to a second's worth, at least one."""

    rate_per_second: float
    left: float
    left_at: datetime

    @property
    def capacity(self) -> float:
        return max(1.0, self.rate_per_second)

    def left_now(self, now: datetime) -> float:
        elapsed = max(0.0, (now - self.left_at).total_seconds())
        return min(self.capacity, self.left + elapsed * self.rate_per_second)

    def take(self, deliveries: int, now: datetime) -> "RateBucket":
        return RateBucket(self.rate_per_second, self.left_now(now) - deliveries, now)

    def next_at(self, now: datetime) -> datetime:
        """When a whole delivery is allowed again."""
        missing = max(0.0, 1.0 - self.left_now(now))
        # Up to the next microsecond: a moment too early nothing would be allowed yet.
        return now + timedelta(microseconds=math.ceil(seconds_at_rate(missing, self.rate_per_second) * 1_000_000))

    def allowed(self, now: datetime) -> int:
        """How many whole deliveries; what sums of fractions lack of a whole is forgiven."""
        return math.floor(self.left_now(now) + ROUNDING)


DEFAULT_QUEUE_SETTINGS = QueueSettings()


def seconds_at_rate(deliveries: float, rate_per_second: float) -> float:
    """How long so many deliveries take; at a rate that is next to nothing, so long that nobody waits for the end."""
    return min(deliveries / rate_per_second, LONGEST_SECONDS)


def _days(days: float) -> timedelta:
    return timedelta(days=days)
