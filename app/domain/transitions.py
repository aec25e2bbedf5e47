"""The state machine: which moves there are, who may make them, and what time alone makes of a task.

A `Move` is a decided change of one task whose row is locked. The functions here decide; a repository writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.errors import LeaseExpired, LeaseMismatch, LeaseRefused, TaskNotLeased
from app.domain.task import Status, TaskState, TokenFate

LEASE_EXPIRED = "lease expired"
ATTEMPTS_USED_UP = "attempts used up"
CANCELLED_WHILE_LEASED = "cancelled"


class Event(StrEnum):
    """What can happen to a task."""

    DUE = "due"
    RESERVE = "reserve"
    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    FAIL = "fail"
    LEASE_LOST = "lease_lost"
    EXPIRE = "expire"
    EXHAUST = "exhaust"
    CANCEL = "cancel"
    REQUEUE = "requeue"


_WAITING = frozenset({Status.SCHEDULED, Status.READY})
_LEASED = frozenset({Status.LEASED})

TRANSITIONS: Mapping[Event, tuple[frozenset[Status], frozenset[Status]]] = {
    Event.DUE: (frozenset({Status.SCHEDULED}), frozenset({Status.READY})),
    Event.RESERVE: (frozenset({Status.READY}), _LEASED),
    Event.ACK: (_LEASED, frozenset({Status.DONE})),
    Event.NACK: (_LEASED, _WAITING | {Status.DEAD, Status.EXPIRED, Status.CANCELLED}),
    Event.RELEASE: (_LEASED, frozenset({Status.READY, Status.EXPIRED, Status.CANCELLED})),
    Event.FAIL: (_LEASED, frozenset({Status.DEAD})),
    Event.LEASE_LOST: (_LEASED, frozenset({Status.READY, Status.DEAD, Status.EXPIRED, Status.CANCELLED})),
    Event.EXPIRE: (_WAITING, frozenset({Status.EXPIRED})),
    Event.EXHAUST: (_WAITING, frozenset({Status.DEAD})),
    Event.CANCEL: (_WAITING | _LEASED, frozenset({Status.CANCELLED})),
    Event.REQUEUE: (frozenset({Status.DEAD}), _WAITING),
}


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """One row of the attempt log, written when the attempt is over."""

    task_id: str
    queue: str
    type: str
    attempt_no: int
    worker_id: str | None
    started_at: datetime
    finished_at: datetime
    success: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one task: `at` is when it happened, which may be before anybody noticed."""

    task: TaskState
    event: Event
    status: Status
    at: datetime
    attempts: int
    available_at: datetime
    reason: str | None = None
    error: str | None = None
    result: str | None = None
    token_hash: str | None = None
    token_fate: TokenFate | None = None
    attempt: EndedAttempt | None = None

    def __post_init__(self) -> None:
        sources, targets = TRANSITIONS[self.event]
        if self.task.status not in sources or self.status not in targets:
            raise AssertionError(f"{self.event}: {self.task.status} → {self.status} is not a transition")


def refusal(task: TaskState, token_hash: str, now: datetime) -> LeaseRefused | None:
    """Why this token gives no right to settle the task, or None if it does."""
    task_id = task.id or ""
    if task.status is Status.LEASED and task.lease_until is not None:
        held = task.lease_token_hash == token_hash
        if task.lease_until > now:
            return None if held else LeaseMismatch(task_id)
        return LeaseExpired(task_id) if held else TaskNotLeased(task_id)
    lost = task.last_token_hash == token_hash and task.last_token_fate is TokenFate.LOST
    return LeaseExpired(task_id) if lost else TaskNotLeased(task_id)


def acked(task: TaskState, now: datetime, result: str | None) -> Move:
    return Move(
        task, Event.ACK, Status.DONE, now, task.attempts, task.available_at,
        result=result, token_hash=task.lease_token_hash, token_fate=TokenFate.ACKED,
        attempt=_ended(task, now, success=True, reason=None),
    )  # fmt: skip


def nacked(task: TaskState, now: datetime, retry_at: datetime, error: str | None) -> Move:
    """The attempt failed: another one later, unless none is left or nobody wants it any more."""
    status, reason, available_at = _after_lease(task, now), None, task.available_at
    if status is Status.READY:
        available_at = retry_at
        status = Status.SCHEDULED if retry_at > now else Status.READY
    if status is Status.DEAD:
        reason = ATTEMPTS_USED_UP if error is None else error
    return Move(
        task, Event.NACK, status, now, task.attempts, available_at,
        reason=reason, error=error, attempt=_ended(task, now, success=False, reason=error),
    )  # fmt: skip


def released(task: TaskState, now: datetime) -> Move:
    """The delivery did not count: the attempt is taken back and nothing is logged."""
    status = _back_in_queue(task, now)
    return Move(task, Event.RELEASE, status, now, task.attempts - 1, task.available_at)


def failed(task: TaskState, now: datetime, reason: str) -> Move:
    return Move(
        task, Event.FAIL, Status.DEAD, now, task.attempts, task.available_at,
        reason=reason, error=reason, token_hash=task.lease_token_hash, token_fate=TokenFate.FAILED,
        attempt=_ended(task, now, success=False, reason=reason),
    )  # fmt: skip


def cancelled(task: TaskState, now: datetime) -> Move:
    """Nobody wants it any more; a lease on it is void from now on."""
    if task.status is not Status.LEASED:
        return _moved_while_waiting(task, Event.CANCEL, Status.CANCELLED, now)
    return Move(
        task, Event.CANCEL, Status.CANCELLED, now, task.attempts, task.available_at,
        attempt=_ended(task, now, success=False, reason=CANCELLED_WHILE_LEASED),
    )  # fmt: skip


def overdue(task: TaskState, now: datetime) -> Move | None:
    """What time alone has made of a task that nobody has moved yet, or None if it is as its row says."""
    if task.status is Status.LEASED:
        return _lease_lost(task, now) if _is_past(task.lease_until, now) else None
    if task.status not in _WAITING:
        return None
    if task.out_of_attempts:
        return _moved_while_waiting(task, Event.EXHAUST, Status.DEAD, task.updated_at, reason=ATTEMPTS_USED_UP)
    if task.expires_at is not None and task.expires_at <= now:
        # A deadline that had passed when the task was accepted or edited took effect then.
        return _moved_while_waiting(task, Event.EXPIRE, Status.EXPIRED, max(task.expires_at, task.updated_at))
    if task.status is Status.SCHEDULED and task.available_at <= now:
        return _moved_while_waiting(task, Event.DUE, Status.READY, task.available_at)
    return None


def is_forgotten(task: TaskState, now: datetime) -> bool:
    """Whether the row can go without a trace: what waited in a queue that is gone, and keys that are held no longer."""
    if task.status is Status.DONE:
        return task.is_homeless(now) or _is_past(task.dedupe_until, now)
    if not task.is_homeless(now) or _had_ended_before_its_queue(task):
        return False
    return task.status in _WAITING or _was_back_before_its_queue_went(task)


def _had_ended_before_its_queue(task: TaskState) -> bool:
    """Whether time had already decided over the task when an exclusive queue's own time was over."""
    ends_at = None if task.home is None else task.home.ends_at
    if ends_at is None:
        return False
    if task.status is Status.LEASED and (task.lease_until is None or task.lease_until > ends_at):
        return False
    return task.out_of_attempts or _is_past(task.expires_at, ends_at)


def _was_back_before_its_queue_went(task: TaskState) -> bool:
    """A lease that ran out while the queue was there left the task waiting in it."""
    ends_at = None if task.home is None else task.home.ends_at
    return task.status is Status.LEASED and ends_at is not None and _is_past(task.lease_until, ends_at)


def _lease_lost(task: TaskState, now: datetime) -> Move:
    """The lease ended by itself, so everything about it is dated at its end, however late it is noticed."""
    ended_at = task.lease_until or now
    status = _after_lease(task, now)
    finished_at = max(ended_at, task.expires_at or ended_at) if status is Status.EXPIRED else ended_at
    return Move(
        task, Event.LEASE_LOST, status, finished_at, task.attempts, task.available_at,
        reason=LEASE_EXPIRED, error=LEASE_EXPIRED, token_hash=task.lease_token_hash, token_fate=TokenFate.LOST,
        attempt=_ended(task, ended_at, success=False, reason=LEASE_EXPIRED),
    )  # fmt: skip


def _after_lease(task: TaskState, now: datetime) -> Status:
    """Where a task goes whose lease ends without success: out of attempts it is dead, not expired."""
    return Status.DEAD if task.out_of_attempts else _back_in_queue(task, now)


def _back_in_queue(task: TaskState, now: datetime) -> Status:
    """A task whose queue is gone has nowhere to wait."""
    if task.is_homeless(now) and not _had_ended_before_its_queue(task):
        return Status.CANCELLED
    return Status.EXPIRED if _is_past(task.expires_at, now) else Status.READY


def _moved_while_waiting(
    task: TaskState, event: Event, status: Status, at: datetime, reason: str | None = None
) -> Move:
    # The token of a lease that was lost before stays known, so that its worker still hears what happened.
    return Move(
        task, event, status, at, task.attempts, task.available_at,
        reason=reason, token_hash=task.last_token_hash, token_fate=task.last_token_fate,
    )  # fmt: skip


def _ended(task: TaskState, at: datetime, *, success: bool, reason: str | None) -> EndedAttempt:
    started_at = task.leased_at or at
    return EndedAttempt(
        task.id or "", task.queue, task.type, task.attempts, task.lease_owner, started_at, at, success, reason
    )


def _is_past(instant: datetime | None, now: datetime) -> bool:
    return instant is not None and instant <= now
