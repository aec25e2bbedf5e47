"""The replies as the OpenAPI document describes them; routes write the JSON themselves, and tests hold them to this."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.domain.doctor import Check, Severity
from app.domain.task import Status
from app.domain.topology import OperationStatus, Reason


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EnqueueReply(Reply):
    id: str
    queue: str
    status: Status
    available_at: str = Field(json_schema_extra={"format": "date-time"})
    existed: bool


class EnqueueBatchReply(Reply):
    results: list[EnqueueReply]


class TaskReply(Reply):
    id: str
    tenant_id: str
    queue: str
    topic: str
    publish_id: str | None
    type: str
    payload: Any = Field(default=None, description="The JSON value, where the task was given one.")
    payload_base64: str | None = Field(default=None, description="The bytes, where the task was given those.")
    content_type: str
    meta: dict[str, Any]
    priority: int
    dedupe_key: str | None
    status: Status
    attempts: int
    max_attempts: int
    available_at: str
    expires_at: str | None
    timeout_seconds: float | None
    lease_owner: str | None
    lease_until: str | None
    last_error: str | None
    last_error_at: str | None
    result: Any
    created_at: str
    updated_at: str
    first_leased_at: str | None
    finished_at: str | None


class ReservedTaskReply(TaskReply):
    lease_token: str


class ReserveReply(Reply):
    tasks: list[ReservedTaskReply]
    server_time: str
    next_available_at: str | None


class TaskListReply(Reply):
    items: list[TaskReply]
    next_cursor: str | None


class ExtendReply(Reply):
    lease_until: str
    server_time: str


class SettleReply(Reply):
    id: str
    status: Status


class NackReply(SettleReply):
    attempts: int
    available_at: str


class RefusedEntry(Reply):
    id: str
    ok: Literal[False]
    code: str
    detail: str


class ExtendedEntry(ExtendReply):
    id: str
    ok: Literal[True]


class SettledEntry(SettleReply):
    ok: Literal[True]


class NackedEntry(NackReply):
    ok: Literal[True]


class ExtendBatchReply(Reply):
    results: list[ExtendedEntry | RefusedEntry]


class SettleBatchReply(Reply):
    results: list[SettledEntry | RefusedEntry]


class NackBatchReply(Reply):
    results: list[NackedEntry | RefusedEntry]


class AttemptReply(Reply):
    attempt_no: int
    worker_id: str | None
    started_at: str
    finished_at: str | None
    success: bool | None
    reason: str | None


class AttemptListReply(Reply):
    items: list[AttemptReply]
    next_cursor: str | None


class DeadLetterReply(TaskReply):
    task_id: str
    reason: str
    failed_at: str


class DeadLetterListReply(Reply):
    items: list[DeadLetterReply]
    next_cursor: str | None


class RequeueReply(Reply):
    requeued: int
    skipped: int
    remaining: int


class PurgeReply(Reply):
    purged: int


class BackoffReply(Reply):
    base_seconds: float
    factor: float
    max_seconds: float
    jitter: float


class QueueReply(Reply):
    name: str
    topic: str | None
    exclusive: bool
    keep_alive_seconds: float
    keep_alive_until: str | None
    max_attempts: int
    lease_seconds: float
    max_lease_seconds: float
    backoff: BackoffReply
    rate_per_second: float | None
    concurrency_limit: int | None
    paused: bool
    history_days: float | None
    dlq_days: float | None
    created_at: str
    updated_at: str


class QueueListReply(Reply):
    items: list[QueueReply]
    next_cursor: str | None


class TopicReply(Reply):
    name: str
    created_at: str


class TopicListReply(Reply):
    items: list[TopicReply]
    next_cursor: str | None


class DeletedReply(Reply):
    name: str
    deleted: Literal[True]


class KeepAliveReply(Reply):
    keep_alive_until: str


class CleanupReply(Reply):
    deleted: int


class StatsReply(Reply):
    ready: int
    scheduled: int
    leased: int
    done: int
    dead: int
    expired: int
    cancelled: int
    ready_by_priority: dict[str, int]
    oldest_ready_seconds: float | None
    next_available_at: str | None
    exact: bool


class DeliveryReply(Reply):
    queue: str
    id: str
    existed: bool


class PublishReply(Reply):
    publish_id: str
    deliveries: list[DeliveryReply]


class ExplainReply(BaseModel):
    """Beside these, the facts that the reason rests on."""

    model_config = ConfigDict(extra="allow")

    reason: Reason
    detail: str


class OperationReply(Reply):
    id: str
    status: OperationStatus
    rate_per_second: float
    requeued: int
    skipped: int
    remaining: int
    created_at: str
    updated_at: str
    finished_at: str | None


class FindingReply(BaseModel):
    """Beside these, the figures that the finding rests on."""

    model_config = ConfigDict(extra="allow")

    check: Check
    severity: Severity
    detail: str
    advice: str | None


class DoctorReply(Reply):
    database: str
    status: Severity = Field(description="That of the worst finding.")
    server_time: str
    findings: list[FindingReply]


class HealthReply(Reply):
    status: str


class FieldProblem(Reply):
    loc: list[str | int]
    msg: str


class Problem(Reply):
    """An error; `code` is stable."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FieldProblem] | None = Field(default=None, description="With 422: where and why.")
    applied: bool | None = Field(default=None, description="With 503: false, or null where the outcome is unknown.")
