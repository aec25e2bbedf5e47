"""What callers ask of the queue, and what they are told: the words in which the layers speak with each other."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from app.domain.backoff import QUEUE_BACKOFF, BackoffOverride
from app.domain.errors import InvalidRequest, LeaseRefused, TaskNotFound, Unavailable
from app.domain.task import ReservedTask, Status

Item = TypeVar("Item")
Key = TypeVar("Key")


class ReserveRequest(Struct, frozen=True, gc=False):
    """`queues` are in the order in which they have their turn among equal priorities.

    Without `lease_seconds` each task takes its queue's.
    """

    tenant_id: str
    queues: Sequence[str]
    limit: int
    lease_seconds: float | None
    max_bytes: int
    types: Sequence[str] = ()
    exclude_ids: Sequence[str] = ()
    worker_id: str | None = None

    @property
    def wish(self) -> Hashable:
        """What is asked for, whoever asks and for how many: requests of the same wish can be served together."""
        return (
            self.tenant_id, tuple(self.queues), self.lease_seconds, self.max_bytes, tuple(self.types),
            tuple(self.exclude_ids),
        )  # fmt: skip


class Reserved(Struct, frozen=True, gc=False):
    """`next_available_at` is known only when nothing was there to reserve."""

    tasks: Sequence[ReservedTask]
    server_time: datetime
    next_available_at: datetime | None = None


class LeaseRef(Struct, frozen=True, gc=False):
    """A task, and the hash of the token that a caller says it holds on it."""

    id: str
    token_hash: str


class ExtendItem(LeaseRef, frozen=True, gc=False):
    lease_seconds: float


class AckItem(LeaseRef, frozen=True, gc=False):
    result: str | None = None


class NackItem(LeaseRef, frozen=True, gc=False):
    """With neither a delay nor an instant, the next attempt comes after the queue's backoff, or what is said of it."""

    backoff: BackoffOverride = QUEUE_BACKOFF
    error: str | None = None
    delay_seconds: float | None = None
    retry_at: datetime | None = None


class ReleaseItem(LeaseRef, frozen=True, gc=False):
    pass


class FailItem(LeaseRef, frozen=True, gc=False):
    reason: str


class Extended(Struct, frozen=True, gc=False):
    id: str
    queue: str
    lease_until: datetime
    server_time: datetime


class Settled(Struct, frozen=True, gc=False):
    """Of a task that is done or dead it need not be told how often it was tried, and when it would be again."""

    id: str
    queue: str
    status: Status
    attempts: int | None = None
    available_at: datetime | None = None


ExtendOutcome: TypeAlias = Extended | LeaseRefused | TaskNotFound | InvalidRequest | Unavailable
SettleOutcome: TypeAlias = Settled | LeaseRefused | TaskNotFound | Unavailable


@dataclass(frozen=True, slots=True)
class TaskEdit:
    """None leaves a field as it is."""

    priority: int | None = None
    available_at: datetime | None = None
    max_attempts: int | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """None does not filter; without a status the live tasks are meant."""

    status: Status | None = None
    queue: str | None = None
    type: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """None does not filter; all None is the whole tenant."""

    queue: str | None = None
    topic: str | None = None
    type: str | None = None
    reason_contains: str | None = None
    before: datetime | None = None
    after: datetime | None = None
    ids: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class LiveKey:
    """Where a page of live tasks ended: in order of acceptance."""

    seq: int


@dataclass(frozen=True, slots=True)
class FinishedKey:
    """Where a page of finished tasks ended: newest first."""

    finished_at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Where a page of attempts ended: in order of start."""

    started_at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Page(Generic[Item, Key]):
    items: Sequence[Item]
    next_key: Key | None


@dataclass(frozen=True, slots=True)
class RequeueRequest:
    filter: DeadLetterFilter
    limit: int | None = None
    reset_attempts: bool = True
    delay_seconds: float = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Requeued:
    """`queues` are those of the tasks that went back, with how many each got."""

    requeued: int
    skipped: int
    remaining: int
    queues: dict[str, int]
