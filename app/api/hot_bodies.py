"""The bodies of hot routes as they mostly are: checked while they are parsed, in one go.

Each of these takes less than its declared model, and nothing that the model refuses. What it does not take, seldom
fields and whatever is wrong, is read by the model, which says what is wrong. Absent JSON is the empty `Raw`.
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct
from pydantic import BaseModel

from app.api.fields import (
    MAX_INT32,
    MAX_PAYLOAD_BYTES,
    MAX_SECONDS,
    MIN_INT32,
    check_meta,
    check_result,
    check_size,
)
from app.api.requests import (
    MAX_BATCH,
    MAX_REPLY_BYTES,
    AckBatch,
    AckBody,
    EnqueueBatch,
    EnqueueRequest,
    ExtendBatch,
    ExtendBody,
    ReleaseBatch,
    ReleaseBody,
    ReserveBody,
)
from app.domain.commands import AckItem, ExtendItem, ReleaseItem, ReserveRequest
from app.domain.identifiers import new_task_id
from app.domain.lease_token import lease_token_hash
from app.domain.task import DEFAULT_PRIORITY, NewTask, Payload

Name = Annotated[str, Meta(pattern=r"^(?!\.\.?\Z)[A-Za-z0-9._:-]{1,255}\Z")]
TypeName = Annotated[str, Meta(pattern=r"^(?!\.\.?\Z)[A-Za-z0-9._:-]{0,255}\Z")]
TaskId = Annotated[str, Meta(pattern=r"^(?!\.\.?\Z)[A-Za-z0-9._:-]{1,64}\Z")]
Label = Annotated[str, Meta(pattern=r"^[^\x00]{1,128}\Z")]
LeaseToken = Annotated[str, Meta(pattern=r"^[^\x00]{1,512}\Z")]
Seconds = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=MAX_SECONDS)]
Int32 = Annotated[int, Meta(ge=MIN_INT32, le=MAX_INT32)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT32)]

ABSENT = Raw()


class HotBody(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What the types of fields cannot say is looked at in `__post_init__`."""


def _is_given(raw: Raw) -> bool:
    """`null` is the same as absent."""
    return raw is not ABSENT and bytes(raw) != b"null"


class HotEnqueue(HotBody, frozen=True, gc=False):
    """See `EnqueueRequest`; bytes, instants and content types are left to it."""

    queue: Name
    payload: Raw
    type: TypeName | None = None
    meta: Raw = ABSENT
    priority: Int32 | None = None
    dedupe_key: Label | None = None
    dedupe_seconds: Seconds | None = None
    max_attempts: Count | None = None
    delay_seconds: Seconds | None = None
    ttl_seconds: PositiveSeconds | None = None
    timeout_seconds: Seconds | None = None
    id: TaskId | None = None

    def __post_init__(self) -> None:
        check_size("payload", bytes(self.payload), MAX_PAYLOAD_BYTES)
        if _is_given(self.meta):
            check_meta(bytes(self.meta))

    def to_task(self) -> NewTask:
        return NewTask(
            id=self.id or new_task_id(),
            id_is_given=self.id is not None,
            queue=self.queue,
            topic=self.queue,
            payload=Payload(bytes(self.payload), is_json=True, content_type="application/json"),
            max_attempts=self.max_attempts,
            type=self.type or "",
            meta=bytes(self.meta).decode() if _is_given(self.meta) else "{}",
            priority=DEFAULT_PRIORITY if self.priority is None else self.priority,
            dedupe_key=self.dedupe_key,
            dedupe_seconds=self.dedupe_seconds or 0.0,
            delay_seconds=self.delay_seconds or 0.0,
            ttl_seconds=self.ttl_seconds,
            timeout_seconds=self.timeout_seconds,
        )


class HotReserve(HotBody, frozen=True, gc=False):
    """See `ReserveBody`."""

    queues: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    lease_seconds: PositiveSeconds | None = None
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] | None = None
    worker_id: Label | None = None

    def to_request(self, tenant_id: str) -> ReserveRequest:
        return ReserveRequest(
            tenant_id=tenant_id,
            queues=self.queues,
            limit=self.limit or 1,
            lease_seconds=self.lease_seconds,
            max_bytes=MAX_REPLY_BYTES,
            worker_id=self.worker_id,
        )


class HotAck(HotBody, frozen=True, gc=False):
    """See `AckBody`."""

    lease_token: LeaseToken
    result: Raw = ABSENT

    def __post_init__(self) -> None:
        if _is_given(self.result):
            check_result(bytes(self.result))

    def to_item(self, task_id: str) -> AckItem:
        result = bytes(self.result).decode() if _is_given(self.result) else None
        return AckItem(task_id, lease_token_hash(self.lease_token), result)


class HotRelease(HotBody, frozen=True, gc=False):
    """See `ReleaseBody`."""

    lease_token: LeaseToken

    def to_item(self, task_id: str) -> ReleaseItem:
        return ReleaseItem(task_id, lease_token_hash(self.lease_token))


class HotExtend(HotBody, frozen=True, gc=False):
    """See `ExtendBody`."""

    lease_token: LeaseToken
    lease_seconds: PositiveSeconds

    def to_item(self, task_id: str) -> ExtendItem:
        return ExtendItem(task_id, lease_token_hash(self.lease_token), self.lease_seconds)


class HotAckEntry(HotAck, frozen=True, gc=False, kw_only=True):
    id: TaskId


class HotReleaseEntry(HotRelease, frozen=True, gc=False, kw_only=True):
    id: TaskId


class HotExtendEntry(HotExtend, frozen=True, gc=False, kw_only=True):
    id: TaskId


class HotEnqueueBatch(HotBody, frozen=True):
    tasks: Annotated[list[HotEnqueue], Meta(min_length=1, max_length=MAX_BATCH)]


class HotAckBatch(HotBody, frozen=True):
    items: Annotated[list[HotAckEntry], Meta(min_length=1, max_length=MAX_BATCH)]


class HotReleaseBatch(HotBody, frozen=True):
    items: Annotated[list[HotReleaseEntry], Meta(min_length=1, max_length=MAX_BATCH)]


class HotExtendBatch(HotBody, frozen=True):
    items: Annotated[list[HotExtendEntry], Meta(min_length=1, max_length=MAX_BATCH)]


HOT_BODIES: dict[type[BaseModel], type[HotBody]] = {
    EnqueueRequest: HotEnqueue,
    EnqueueBatch: HotEnqueueBatch,
    ReserveBody: HotReserve,
    AckBody: HotAck,
    AckBatch: HotAckBatch,
    ReleaseBody: HotRelease,
    ReleaseBatch: HotReleaseBatch,
    ExtendBody: HotExtend,
    ExtendBatch: HotExtendBatch,
}
