"""The bodies of requests, and what they mean."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.fields import (
    Base64,
    ContentType,
    Count,
    ErrorText,
    Instant,
    Int32,
    Label,
    LeaseToken,
    MetaJson,
    Name,
    PayloadJson,
    PositiveSeconds,
    ResultJson,
    Seconds,
    TaskId,
    Text,
    TypeName,
    decode_base64,
)
from app.domain.backoff import QUEUE_BACKOFF, BackoffOverride
from app.domain.commands import (
    AckItem,
    DeadLetterFilter,
    ExtendItem,
    FailItem,
    NackItem,
    ReleaseItem,
    RequeueRequest,
    ReserveRequest,
    TaskEdit,
)
from app.domain.identifiers import new_task_id
from app.domain.lease_token import lease_token_hash
from app.domain.task import DEFAULT_PRIORITY, NewTask, Payload

MAX_BATCH = 1000
# A reply holds about 8 MiB; the fields around the payloads take the rest.
MAX_REPLY_BYTES = 7 * 1024 * 1024


class Body(BaseModel):
    """A body is strict: no type is guessed, no unknown field ignored; `null` is the same as absent."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _at_most_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) > 1:
        raise ValueError(f"give only one of {', '.join(names)}")


class MessageBody(Body):
    """What a task carries, wherever it goes."""

    payload: PayloadJson | None = Field(default=None, description="Any JSON value, `null` included.")
    payload_base64: Base64 | None = Field(default=None, description="Bytes, instead of `payload`.")
    content_type: ContentType | None = None
    type: TypeName | None = None
    meta: MetaJson = Field(default=None, json_schema_extra={"type": "object"})
    priority: Int32 | None = Field(default=None, description="Higher runs first; 20 if not given.")
    dedupe_key: Label | None = None
    dedupe_seconds: Seconds | None = Field(default=None, description="How long the key is held after the task is done.")
    max_attempts: Count | None = Field(default=None, description="0 is unlimited; the queue's if not given.")
    delay_seconds: Seconds | None = None
    available_at: Instant | None = None
    ttl_seconds: PositiveSeconds | None = None
    expires_at: Instant | None = None
    timeout_seconds: Seconds | None = Field(default=None, description="Advice to the worker.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.payload is None) == (self.payload_base64 is None):
            raise ValueError("give either payload or payload_base64")
        _at_most_one(self, "delay_seconds", "available_at")
        _at_most_one(self, "ttl_seconds", "expires_at")
        if self.payload_base64 is not None:
            decode_base64(self.payload_base64)
        return self

    def build(self, *, task_id: str | None, queue: str, topic: str, publish_id: str | None = None) -> NewTask:
        return NewTask(
            id=task_id or new_task_id(),
            id_is_given=task_id is not None,
            queue=queue,
            topic=topic,
            publish_id=publish_id,
            payload=self._payload(),
            max_attempts=self.max_attempts,
            type=self.type or "",
            meta="{}" if self.meta is None else self.meta.decode(),
            priority=DEFAULT_PRIORITY if self.priority is None else self.priority,
            dedupe_key=self.dedupe_key,
            dedupe_seconds=self.dedupe_seconds or 0.0,
            delay_seconds=self.delay_seconds or 0.0,
            available_at=self.available_at,
            ttl_seconds=self.ttl_seconds,
            expires_at=self.expires_at,
            timeout_seconds=self.timeout_seconds,
        )

    def _payload(self) -> Payload:
        if self.payload_base64 is not None:
            data = decode_base64(self.payload_base64)
            return Payload(data, is_json=False, content_type=self.content_type or "application/octet-stream")
        return Payload(bytes(self.payload or b""), is_json=True, content_type=self.content_type or "application/json")


class EnqueueRequest(MessageBody):
    """A new task; only `queue` and a payload are needed."""

    queue: Name
    id: TaskId | None = None

    def to_task(self) -> NewTask:
        return self.build(task_id=self.id, queue=self.queue, topic=self.queue)


class EnqueueBatch(Body):
    tasks: Annotated[list[EnqueueRequest], Field(min_length=1, max_length=MAX_BATCH)]


class ReserveBody(Body):
    queues: Annotated[list[Name], Field(min_length=1, max_length=100)]
    limit: Annotated[int, Field(ge=1, le=1000)] | None = Field(default=None, description="1 if not given.")
    lease_seconds: PositiveSeconds | None = Field(default=None, description="The queue's if not given.")
    wait_seconds: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] | None = None
    types: Annotated[list[TypeName], Field(max_length=100)] | None = Field(default=None, description="Empty: all.")
    exclude_ids: Annotated[list[TaskId], Field(max_length=1000)] | None = None
    worker_id: Label | None = None

    def to_request(self, tenant_id: str) -> ReserveRequest:
        return ReserveRequest(
            tenant_id=tenant_id,
            queues=self.queues,
            limit=self.limit or 1,
            lease_seconds=self.lease_seconds,
            max_bytes=MAX_REPLY_BYTES,
            types=tuple(dict.fromkeys(self.types or ())),
            exclude_ids=self.exclude_ids or (),
            worker_id=self.worker_id,
        )


class ReleaseBody(Body):
    lease_token: LeaseToken

    def to_item(self, task_id: str) -> ReleaseItem:
        return ReleaseItem(task_id, lease_token_hash(self.lease_token))


class ExtendBody(Body):
    lease_token: LeaseToken
    lease_seconds: PositiveSeconds

    def to_item(self, task_id: str) -> ExtendItem:
        return ExtendItem(task_id, lease_token_hash(self.lease_token), self.lease_seconds)


class AckBody(Body):
    lease_token: LeaseToken
    result: ResultJson = None

    def to_item(self, task_id: str) -> AckItem:
        result = None if self.result is None else self.result.decode()
        return AckItem(task_id, lease_token_hash(self.lease_token), result)


class BackoffBody(Body):
    """What is not given is the queue's."""

    base_seconds: Seconds | None = None
    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    max_seconds: Seconds | None = None
    jitter: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None

    def to_override(self) -> BackoffOverride:
        return BackoffOverride(self.base_seconds, self.factor, self.max_seconds, self.jitter)


class NackBody(Body):
    """With no delay given, the next attempt comes after an exponential backoff."""

    lease_token: LeaseToken
    error: ErrorText | None = None
    delay_seconds: Seconds | None = None
    retry_at: Instant | None = None
    backoff: BackoffBody | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _at_most_one(self, "delay_seconds", "retry_at", "backoff")
        return self

    def to_item(self, task_id: str) -> NackItem:
        return NackItem(
            task_id,
            lease_token_hash(self.lease_token),
            backoff=QUEUE_BACKOFF if self.backoff is None else self.backoff.to_override(),
            error=self.error,
            delay_seconds=self.delay_seconds,
            retry_at=self.retry_at,
        )


class FailBody(Body):
    lease_token: LeaseToken
    reason: ErrorText

    def to_item(self, task_id: str) -> FailItem:
        return FailItem(task_id, lease_token_hash(self.lease_token), self.reason)


class ReleaseEntry(ReleaseBody):
    id: TaskId


class ExtendEntry(ExtendBody):
    id: TaskId


class AckEntry(AckBody):
    id: TaskId


class NackEntry(NackBody):
    id: TaskId


class FailEntry(FailBody):
    id: TaskId


class ReleaseBatch(Body):
    items: Annotated[list[ReleaseEntry], Field(min_length=1, max_length=MAX_BATCH)]


class ExtendBatch(Body):
    items: Annotated[list[ExtendEntry], Field(min_length=1, max_length=MAX_BATCH)]


class AckBatch(Body):
    items: Annotated[list[AckEntry], Field(min_length=1, max_length=MAX_BATCH)]


class NackBatch(Body):
    items: Annotated[list[NackEntry], Field(min_length=1, max_length=MAX_BATCH)]


class FailBatch(Body):
    items: Annotated[list[FailEntry], Field(min_length=1, max_length=MAX_BATCH)]


class EditBody(Body):
    priority: Int32 | None = None
    available_at: Instant | None = None
    max_attempts: Count | None = None
    expires_at: Instant | None = None

    def to_edit(self) -> TaskEdit:
        return TaskEdit(self.priority, self.available_at, self.max_attempts, self.expires_at)


class DeadLetterFilterBody(Body):
    """What is not given does not filter; nothing given means the whole tenant."""

    queue: Name | None = None
    topic: Name | None = None
    type: TypeName | None = None
    reason_contains: Text | None = None
    before: Instant | None = None
    after: Instant | None = None

    def to_filter(self, ids: list[str] | None = None) -> DeadLetterFilter:
        return DeadLetterFilter(
            self.queue, self.topic, self.type, self.reason_contains or None, self.before, self.after, ids
        )


class RequeueOneBody(Body):
    reset_attempts: bool | None = Field(default=None, description="true if not given.")
    delay_seconds: Seconds | None = None
    dry_run: bool | None = None

    def to_request(self, letters: DeadLetterFilter, limit: int | None = None) -> RequeueRequest:
        return RequeueRequest(
            filter=letters,
            limit=limit,
            reset_attempts=self.reset_attempts is not False,
            delay_seconds=self.delay_seconds or 0.0,
            dry_run=self.dry_run is True,
        )


class RequeueBody(DeadLetterFilterBody, RequeueOneBody):
    ids: Annotated[list[TaskId], Field(max_length=1000)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    rate_per_second: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = Field(
        default=None, description="Go on in the background, at this rate."
    )


class PurgeBody(DeadLetterFilterBody):
    dry_run: bool | None = None
