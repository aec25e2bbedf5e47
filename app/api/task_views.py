"""Tasks as callers get to see them, payloads spliced in as they were given.

A view is a `Struct`, made and written in half the time of a dictionary: there is one for every task that is delivered.
"""

import base64
from datetime import datetime

from msgspec import UNSET, Raw, Struct, UnsetType

from app.domain.task import DeadLetter, Status, Task

# What `msgspec` writes as it is.
Instant = datetime | str | None

NO_META = Raw(b"{}")


class TaskView(Struct, frozen=True, gc=False):
    """What is unset is left out."""

    id: str
    tenant_id: str
    queue: str
    topic: str
    publish_id: str | None
    type: str
    payload: Raw | UnsetType
    payload_base64: str | UnsetType
    content_type: str
    meta: Raw
    priority: int
    dedupe_key: str | None
    status: Status
    attempts: int
    max_attempts: int
    available_at: Instant
    expires_at: Instant
    timeout_seconds: float | None
    lease_owner: str | None
    lease_until: Instant
    last_error: str | None
    last_error_at: Instant
    result: Raw | None
    created_at: Instant
    updated_at: Instant
    first_leased_at: Instant
    finished_at: Instant
    lease_token: str | UnsetType = UNSET
    # Of a dead letter.
    task_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    failed_at: Instant | UnsetType = UNSET


def task_view(
    task: Task,
    lease_token: str | UnsetType = UNSET,
    task_id: str | UnsetType = UNSET,
    reason: str | UnsetType = UNSET,
    failed_at: Instant | UnsetType = UNSET,
) -> TaskView:
    payload = task.payload
    # Field by field, and not by name: it is done for every task that is delivered.
    return TaskView(
        task.id,
        task.tenant_id,
        task.queue,
        task.topic,
        task.publish_id,
        task.type,
        Raw(payload.data) if payload.is_json else UNSET,
        UNSET if payload.is_json else base64.b64encode(payload.data).decode(),
        payload.content_type,
        NO_META if task.meta == "{}" else Raw(task.meta.encode()),
        task.priority,
        task.dedupe_key,
        task.status,
        task.attempts,
        task.max_attempts,
        instant(task.available_at),
        task.expires_at and instant(task.expires_at),
        task.timeout_seconds,
        task.lease_owner,
        instant(task.lease_until),
        task.last_error,
        task.last_error_at and instant(task.last_error_at),
        None if task.result is None else Raw(task.result.encode()),
        instant(task.created_at),
        instant(task.updated_at),
        instant(task.first_leased_at),
        task.finished_at and instant(task.finished_at),
        lease_token,
        task_id,
        reason,
        failed_at,
    )


def dead_letter_view(letter: DeadLetter) -> TaskView:
    return task_view(letter.task, task_id=letter.task.id, reason=letter.reason, failed_at=instant(letter.failed_at))


def instant(value: datetime | None) -> Instant:
    """RFC 3339 in UTC with microseconds, for `msgspec` to write, who is quick but leaves out those that are zero."""
    return value if value is None or value.microsecond else _whole_second(value)


def _whole_second(value: datetime) -> str:
    # All instants are in UTC, so the offset is always the same six characters.
    return value.isoformat(timespec="microseconds")[:-6] + "Z"
