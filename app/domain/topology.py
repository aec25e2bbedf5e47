"""Topics, and what is told about queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.domain.task import Enqueued, Status


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NameKey:
    """Where a page of names ended."""

    name: str


@dataclass(frozen=True, slots=True)
class Published:
    """One message, and what became of it in every queue that was subscribed."""

    publish_id: str
    deliveries: Sequence[Enqueued]


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many tasks there are in each state; beyond a bound the counts are a sample from a moment ago."""

    counts: Mapping[Status, int]
    ready_by_priority: Mapping[int, int]
    oldest_ready_seconds: float | None
    next_available_at: datetime | None
    exact: bool


class Reason(StrEnum):
    """Why a task is not running now."""

    SCHEDULED = "scheduled"
    QUEUE_PAUSED = "queue_paused"
    RATE_LIMITED = "rate_limited"
    CONCURRENCY_LIMITED = "concurrency_limited"
    WAITING_BEHIND = "waiting_behind"
    READY = "ready"
    LEASED = "leased"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Explanation:
    reason: Reason
    detail: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Advanced:
    """An operation went a step further: how many each queue got."""

    tenant_id: str
    queues: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Resting:
    """No operation may go on before so many seconds, as far as is known."""

    seconds: float | None


class OperationStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Operation:
    """A requeue of dead letters that goes on in the background, at a rate."""

    id: str
    status: OperationStatus
    rate_per_second: float
    requeued: int
    skipped: int
    remaining: int
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
