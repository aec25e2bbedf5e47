"""The task: what is asked for, what is kept, and what is handed out.

What is made for every task of a batch is a `Struct`: made several times as fast as a dataclass and, since none can be
part of a cycle, left alone by the garbage collector.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from app.domain.queue import DEFAULT_QUEUE_SETTINGS, QueueSettings

DEFAULT_PRIORITY = 20


class Status(StrEnum):
    SCHEDULED = "scheduled"
    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


LIVE_STATUSES = frozenset({Status.SCHEDULED, Status.READY, Status.LEASED})


class TokenFate(StrEnum):
    """What became of the last lease token of a task that is not leased now."""

    LOST = "lost"
    ACKED = "acked"
    FAILED = "failed"


class Payload(Struct, frozen=True, gc=False):
    """The bytes of a payload: JSON text exactly as it was given, or whatever the producer sent as base64."""

    data: bytes
    is_json: bool
    content_type: str


class NewTask(Struct, frozen=True, gc=False):
    """A task as a producer asks for it; times are resolved by the database's clock when it is accepted."""

    id: str
    queue: str
    topic: str
    payload: Payload
    max_attempts: int | None = None
    # An id that we made ourselves needs no look whether it is taken.
    id_is_given: bool = False
    type: str = ""
    meta: str = "{}"
    priority: int = DEFAULT_PRIORITY
    dedupe_key: str | None = None
    dedupe_seconds: float = 0.0
    delay_seconds: float = 0.0
    available_at: datetime | None = None
    ttl_seconds: float | None = None
    expires_at: datetime | None = None
    timeout_seconds: float | None = None
    publish_id: str | None = None

    def due_at(self, now: datetime) -> datetime:
        if self.available_at is None and self.delay_seconds == 0:
            return now
        return self.available_at or now + timedelta(seconds=self.delay_seconds)

    def expiry_at(self, now: datetime) -> datetime | None:
        if self.ttl_seconds is not None:
            return now + timedelta(seconds=self.ttl_seconds)
        return self.expires_at

    def size(self) -> int:
        """About how many bytes the task adds to a reply."""
        data = len(self.payload.data)
        in_reply = data if self.payload.is_json else 4 * -(-data // 3)
        return in_reply + len(self.meta.encode())


class Enqueued(Struct, frozen=True, gc=False):
    """What the producer hears: the new task, or the one that held its dedupe key."""

    id: str
    queue: str
    status: Status
    available_at: datetime
    existed: bool


class QueueOfTask(Struct, frozen=True, gc=False):
    """What a task's queue has to say about it."""

    ends_at: datetime | None
    settings: QueueSettings


class TaskState(Struct, frozen=True, gc=False):
    """What decides over a live task, without the weight of its payload.

    `home` is its queue, or None if that was deleted so long ago that nobody knows of it.
    """

    seq: int
    queue_id: int
    home: QueueOfTask | None
    id: str | None
    queue: str
    type: str
    status: Status
    attempts: int
    max_attempts: int
    available_at: datetime
    expires_at: datetime | None
    lease_owner: str | None
    lease_token_hash: str | None
    lease_until: datetime | None
    leased_at: datetime | None
    last_token_hash: str | None
    last_token_fate: TokenFate | None
    failed_token_hash: str | None
    dedupe_key: str | None
    dedupe_seconds: float
    dedupe_until: datetime | None
    tombstone_id: str | None
    updated_at: datetime

    @property
    def out_of_attempts(self) -> bool:
        return 0 < self.max_attempts <= self.attempts

    @property
    def policy(self) -> QueueSettings:
        return DEFAULT_QUEUE_SETTINGS if self.home is None else self.home.settings

    def is_homeless(self, now: datetime) -> bool:
        """Whether the queue that the task was in is gone."""
        return self.home is None or (self.home.ends_at is not None and self.home.ends_at <= now)


class Task(Struct, frozen=True, gc=False):
    """A task in whatever state, as callers see it."""

    tenant_id: str
    id: str
    queue: str
    topic: str
    publish_id: str | None
    type: str
    payload: Payload
    meta: str
    priority: int
    dedupe_key: str | None
    status: Status
    attempts: int
    max_attempts: int
    available_at: datetime
    expires_at: datetime | None
    timeout_seconds: float | None
    lease_owner: str | None
    lease_until: datetime | None
    last_error: str | None
    last_error_at: datetime | None
    result: str | None
    created_at: datetime
    updated_at: datetime
    first_leased_at: datetime | None
    finished_at: datetime | None


class ReservedTask(Struct, frozen=True, gc=False):
    """A task with the token that gives the right to settle it: the only place where a token is shown."""

    task: Task
    lease_token: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead task, why it died, and when."""

    task: Task
    reason: str
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery of a task to a worker; it runs while `finished_at` is None."""

    attempt_no: int
    worker_id: str | None
    started_at: datetime
    finished_at: datetime | None
    success: bool | None
    reason: str | None


class AttemptLog(StrEnum):
    """Which attempts are logged."""

    ALL = "all"
    FAILURES = "failures"
    OFF = "off"
