"""What the advice says: a sentence for people, the figures that it rests on, and how far to trust it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.backoff import Backoff
from app.domain.queue import DEFAULT_QUEUE_SETTINGS


class Confidence(StrEnum):
    """How far to trust a piece of advice; with none there is no advice, only the reason why."""

    NONE = "none"
    LOW = "low"
    GOOD = "good"


class LogSeen(StrEnum):
    """How much of a queue's attempts its log holds, judged by the tasks that are done."""

    ALL = "all"
    PARTIAL = "partial"
    FAILURES = "failures"
    OFF = "off"
    # Nothing is done yet: nobody can tell.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class QueueKey:
    """Queues of one name in two tenants are two queues."""

    tenant_id: str
    queue: str


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """The settings of a queue that the advice is about; the defaults are those of a queue that nobody declared."""

    lease_seconds: float = DEFAULT_QUEUE_SETTINGS.lease_seconds
    max_lease_seconds: float = DEFAULT_QUEUE_SETTINGS.max_lease_seconds
    # 0 is unlimited.
    max_attempts: int = DEFAULT_QUEUE_SETTINGS.max_attempts
    backoff: Backoff = DEFAULT_QUEUE_SETTINGS.backoff
    rate_per_second: float | None = None
    concurrency_limit: int | None = None
    paused: bool = False

    @property
    def is_limited(self) -> bool:
        return self.rate_per_second is not None or self.concurrency_limit is not None


@dataclass(frozen=True, slots=True)
class Target:
    """The wait that is wanted: this share of tasks is leased within so many seconds of being due."""

    wait_seconds: float = 5.0
    share: float = 0.95

    def __post_init__(self) -> None:
        if not (self.wait_seconds >= 0 and 0 < self.share < 1):
            raise ValueError("a target wait is at least 0 seconds, for a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that the advice rests on; `unit` is `s`, `tasks`, `runs`, `workers`, `share`, `tasks/s` or empty."""

    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What every piece of advice carries."""

    sentence: str
    confidence: Confidence
    evidence: tuple[Figure, ...] = ()
    # What the data cannot tell, or what was left out, a sentence each.
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAdvice(Advice):
    """A lease and a heartbeat (the interval of `extend`), or None where the data is too thin."""

    lease_seconds: float | None = None
    heartbeat_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Rescue:
    """What attempt n did: how many tasks reached it and ended it, and how many of them it made succeed."""

    attempt: int
    reached: int
    rescued: int
    # The bounds of the share that was rescued, by Wilson's interval.
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.rescued / self.reached if self.reached else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsAdvice(Advice):
    """A limit of attempts, and what each attempt was worth, first to last."""

    max_attempts: int | None = None
    rescues: tuple[Rescue, ...] = ()


@dataclass(frozen=True, slots=True)
class DelayOutcome:
    """How second attempts ended that began so long after the first had failed."""

    from_seconds: float
    to_seconds: float
    attempts: int
    succeeded: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.succeeded / self.attempts if self.attempts else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffAdvice(Advice):
    """A base of the backoff, and how success depends on the delay, shortest first."""

    base_seconds: float | None = None
    delays: tuple[DelayOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitAt:
    """The simulated wait with so many workers, in the worst hour and over the whole window."""

    workers: int
    worst_hour_seconds: float
    overall_seconds: float
    mean_seconds: float
    # The share of the workers' time that is spent on tasks.
    busy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersAdvice(Advice):
    """How many workers hold the target in every hour, and over the window taken as one; waits by number of workers."""

    target: Target
    workers: int | None = None
    overall_workers: int | None = None
    curve: tuple[WaitAt, ...] = ()
    window_start: datetime | None = None
    window_end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainForecast(Advice):
    """How long the backlog lasts. `never`: at the observed rates it does not end; then `likely_seconds` is None.

    `latest_seconds` is None when the slow end of the range has no end. With no live database `backlog` is None.
    """

    backlog: int | None = None
    never: bool = False
    soonest_seconds: float | None = None
    likely_seconds: float | None = None
    latest_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class QueueAdvice:
    """All advice about one queue. Without `policy_is_known` the policy is an assumption: the defaults."""

    key: QueueKey
    policy: QueuePolicy
    policy_is_known: bool
    log: LogSeen
    lease: LeaseAdvice
    attempts: AttemptsAdvice
    backoff: BackoffAdvice
    workers: WorkersAdvice
    drain: DrainForecast
