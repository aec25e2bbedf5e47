"""Between rows and what the domain speaks of."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from app.domain.backoff import Backoff
from app.domain.queue import DEFAULT_QUEUE_SETTINGS, QueueSettings
from app.domain.task import Attempt, DeadLetter, Payload, QueueOfTask, Status, Task, TaskState, TokenFate
from app.domain.transitions import Move
from app.repository.connection import Row

_STATUSES: dict[str, Status] = {status.value: status for status in Status}


def state_of(row: Row) -> TaskState:
    fate = row["last_token_fate"]
    # Field by field, and not by name: it is done for every task that is settled.
    return TaskState(
        row["seq"],
        row["queue_id"],
        _home_of(row),
        row["id"],
        row["queue"],
        row["type"],
        _STATUSES[row["status"]],
        row["attempts"],
        row["max_attempts"],
        row["available_at"],
        row["expires_at"],
        row["lease_owner"],
        row["lease_token_hash"],
        row["lease_until"],
        row["leased_at"],
        row["last_token_hash"],
        None if fate is None else TokenFate(fate),
        row["failed_token_hash"],
        row["dedupe_key"],
        row["dedupe_seconds"],
        row["dedupe_until"],
        row["tombstone_id"],
        row["updated_at"],
    )


def _home_of(row: Row) -> QueueOfTask | None:
    if row["known_queue_id"] is None:
        return None
    return _queue_of_task(*(row[name] for name in _OF_HOME))


_OF_HOME = (
    "queue_ends_at", "max_lease_seconds", "concurrency_limit", "history_days", "backoff_base_seconds",
    "backoff_factor", "backoff_max_seconds", "backoff_jitter",
)  # fmt: skip


@lru_cache(maxsize=10_000)
def _queue_of_task(
    ends_at: datetime | None,
    max_lease_seconds: float | None,
    concurrency_limit: int | None,
    history_days: float | None,
    *backoff: float,
) -> QueueOfTask:
    """The tasks of a batch have few queues between them."""
    if max_lease_seconds is None:
        return QueueOfTask(ends_at, DEFAULT_QUEUE_SETTINGS)
    settings = QueueSettings(
        max_lease_seconds=max_lease_seconds,
        concurrency_limit=concurrency_limit,
        backoff=Backoff(*backoff),
        history_days=history_days,
    )
    return QueueOfTask(ends_at, settings)


def live_task_of(row: Row) -> Task:
    return _task_of(row, row["lease_until"], row["updated_at"], None, None)


def leased_task_of(row: Iterable[Any], first: Row, tenant_id: str, queue: str, worker_id: str | None) -> Task:
    """A task of a claim at once: what its row leaves out is as usual, or as the first row of the claim says."""
    now = first["now"]
    # By their places, which takes half the time that their names would: they stand as in the part `leased_task`.
    (
        _position, _now, _leased_until, _queue_id, _returns, _seq, id_, topic, publish_id, type_, payload, is_json,
        content_type, meta, priority, dedupe_key, attempts, max_attempts, available_at, expires_at, timeout_seconds,
        lease_until, last_error, last_error_at, created_at, updated_at, first_leased_at,
    ) = row  # fmt: skip
    return Task(
        tenant_id,
        id_,
        queue,
        topic or queue,
        publish_id,
        type_ or "",
        Payload(payload, is_json, content_type or "application/json"),
        meta or "{}",
        priority,
        dedupe_key,
        Status.LEASED,
        attempts,
        max_attempts,
        available_at or created_at,
        expires_at,
        timeout_seconds,
        worker_id,
        lease_until or first["leased_until"],
        last_error,
        last_error_at,
        None,
        created_at,
        updated_at or now,
        first_leased_at or now,
        None,
    )


def finished_task_of(row: Row) -> Task:
    return _task_of(row, None, row["finished_at"], row["result"], row["finished_at"])


def dead_letter_of(row: Row) -> DeadLetter:
    task = finished_task_of({**row, "status": Status.DEAD, "result": None, "finished_at": row["failed_at"]})
    return DeadLetter(task, row["reason"], row["failed_at"])


def attempt_of(row: Row) -> Attempt:
    return Attempt(
        row["attempt_no"],
        row["worker_id"] or None,
        row["started_at"],
        row["finished_at"],
        bool(row["success"]),
        row["reason"],
    )


def move_record(move: Move) -> dict[str, object]:
    """A move as the statements take it; what became of the error and the key is decided here once for all dialects."""
    task = move.task
    return {
        "seq": task.seq,
        "task_id": task.id,
        "status": move.status,
        "at": move.at,
        "attempts": move.attempts,
        "available_at": move.available_at,
        "reason": move.reason,
        "error": move.error,
        "error_at": move.attempt.finished_at if move.error is not None and move.attempt is not None else None,
        "result": move.result,
        "token_hash": move.token_hash,
        "token_fate": move.token_fate,
        "keep_until": keep_until(move),
        "dedupe_until": move.at + timedelta(seconds=task.dedupe_seconds) if leaves_tombstone(move) else None,
    }


def keep_until(move: Move) -> datetime | None:
    """How long the history has the task."""
    return move.task.policy.keep_history_until(move.at)


def leaves_tombstone(move: Move) -> bool:
    """A done task holds its dedupe key for as long as it was asked to."""
    return move.status is Status.DONE and move.task.dedupe_key is not None and move.task.dedupe_seconds > 0


def _task_of(
    row: Row,
    lease_until: datetime | None,
    updated_at: datetime,
    result: str | None,
    finished_at: datetime | None,
) -> Task:
    # Field by field, and not by name: it is done for every task that is delivered.
    return Task(
        row["tenant_id"],
        row["id"],
        row["queue"],
        row["topic"],
        row["publish_id"],
        row["type"],
        Payload(bytes(row["payload"]), bool(row["payload_is_json"]), row["content_type"]),
        row["meta"],
        row["priority"],
        row["dedupe_key"],
        _STATUSES[row["status"]],
        row["attempts"],
        row["max_attempts"],
        row["available_at"],
        row["expires_at"],
        row["timeout_seconds"],
        # The empty owner is that of a worker which did not say its name.
        row["lease_owner"] or None,
        lease_until,
        row["last_error"],
        row["last_error_at"],
        result,
        row["created_at"],
        updated_at,
        row["first_leased_at"],
        finished_at,
    )
