"""Between rows and what the domain speaks of."""

from datetime import timedelta
from typing import Any

from app.domain.queue import DEFAULT_QUEUE_SETTINGS, QueueSettings
from app.domain.task import Attempt, DeadLetter, Payload, QueueOfTask, Status, Task, TaskState, TokenFate
from app.domain.transitions import Move
from app.repository.connection import Row
from app.repository.queue_records import backoff_of


def state_of(row: Row) -> TaskState:
    fate = row["last_token_fate"]
    values: dict[str, Any] = {name: row[name] for name in TaskState.__slots__ if name != "home"}
    return TaskState(
        **{
            **values,
            "home": _home_of(row),
            "status": Status(row["status"]),
            "last_token_fate": None if fate is None else TokenFate(fate),
        }
    )


def _home_of(row: Row) -> QueueOfTask | None:
    if row["known_queue_id"] is None:
        return None
    if row["max_lease_seconds"] is None:
        return QueueOfTask(row["queue_ends_at"], DEFAULT_QUEUE_SETTINGS)
    settings = QueueSettings(
        max_lease_seconds=row["max_lease_seconds"],
        concurrency_limit=row["concurrency_limit"],
        backoff=backoff_of(row),
        history_days=row["history_days"],
    )
    return QueueOfTask(row["queue_ends_at"], settings)


def live_task_of(row: Row) -> Task:
    return _task_of(row, lease_until=row["lease_until"], updated_at=row["updated_at"], result=None, finished_at=None)


def finished_task_of(row: Row) -> Task:
    finished_at = row["finished_at"]
    return _task_of(row, lease_until=None, updated_at=finished_at, result=row["result"], finished_at=finished_at)


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
        "keep_until": task.policy.keep_history_until(move.at),
        "dedupe_until": move.at + timedelta(seconds=task.dedupe_seconds) if leaves_tombstone(move) else None,
    }


def leaves_tombstone(move: Move) -> bool:
    """A done task holds its dedupe key for as long as it was asked to."""
    return move.status is Status.DONE and move.task.dedupe_key is not None and move.task.dedupe_seconds > 0


def _task_of(row: Row, **given: Any) -> Task:
    names = (name for name in Task.__slots__ if name not in given and name != "payload")
    values: dict[str, Any] = {name: row[name] for name in names}
    payload = Payload(bytes(row["payload"]), bool(row["payload_is_json"]), row["content_type"])
    # The empty owner is that of a worker which did not say its name.
    owner = row["lease_owner"] or None
    return Task(**{**values, **given, "payload": payload, "status": Status(row["status"]), "lease_owner": owner})
