"""The bodies of hot routes as they mostly are: checked while they are parsed, in one go.

Each of these takes less than its declared model, and nothing that the model refuses. What it does not take, seldom
fields and whatever is wrong, is read by the model, which says what is wrong. Absent JSON is the empty `Raw`.
"""

from collections.abc import Collection
from typing import Annotated

import msgspec
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
from app.domain.errors import ContentTooLarge
from app.domain.identifiers import NAME_MAX_LENGTH, TASK_ID_MAX_LENGTH, are_of_names, new_task_id
from app.domain.lease_token import lease_token_hash
from app.domain.task import DEFAULT_PRIORITY, NewTask, Payload

# Whether it is a name is looked at in `check_names`: of all tasks of a batch at once, which takes a fifth of the time.
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX_LENGTH)]
TypeName = Annotated[str, Meta(max_length=NAME_MAX_LENGTH)]
TaskId = Annotated[str, Meta(min_length=1, max_length=TASK_ID_MAX_LENGTH)]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
LeaseToken = Annotated[str, Meta(min_length=1, max_length=512)]
Seconds = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=MAX_SECONDS)]
Int32 = Annotated[int, Meta(ge=MIN_INT32, le=MAX_INT32)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT32)]

ABSENT = Raw()
# JSON has no other way to write it.
NUL = rb"\u0000"


class HotBody(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What the types of fields cannot say is looked at in `__post_init__`."""


def check_names(names: Collection[str]) -> None:
    """Raises `ValueError` if one of them is no name; an empty one was not given."""
    if not are_of_names(names):
        raise ValueError


def _is_given(raw: Raw) -> bool:
    """`null` is the same as absent."""
    return raw is not ABSENT and bytes(raw) != b"null"


class EnqueueFields(HotBody, frozen=True, gc=False):
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

    def check_sizes(self) -> None:
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


class HotEnqueue(EnqueueFields, frozen=True, gc=False):
    def __post_init__(self) -> None:
        check_names((self.queue, self.type or "", self.id or ""))
        self.check_sizes()


class HotReserve(HotBody, frozen=True, gc=False):
    """See `ReserveBody`."""

    queues: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    lease_seconds: PositiveSeconds | None = None
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] | None = None
    worker_id: Label | None = None

    def __post_init__(self) -> None:
        check_names(self.queues)

    def to_request(self, tenant_id: str) -> ReserveRequest:
        return ReserveRequest(
            tenant_id=tenant_id,
            queues=self.queues,
            limit=self.limit or 1,
            lease_seconds=self.lease_seconds,
            max_bytes=MAX_REPLY_BYTES,
            worker_id=self.worker_id,
        )


class AckFields(HotBody, frozen=True, gc=False):
    """See `AckBody`."""

    lease_token: LeaseToken
    result: Raw = ABSENT

    def check_sizes(self) -> None:
        if _is_given(self.result):
            check_result(bytes(self.result))

    def to_item(self, task_id: str) -> AckItem:
        result = bytes(self.result).decode() if _is_given(self.result) else None
        return AckItem(task_id, lease_token_hash(self.lease_token), result)


class HotAck(AckFields, frozen=True, gc=False):
    def __post_init__(self) -> None:
        self.check_sizes()


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


class HotAckEntry(AckFields, frozen=True, gc=False, kw_only=True):
    id: TaskId


class HotReleaseEntry(HotRelease, frozen=True, gc=False, kw_only=True):
    id: TaskId


class HotExtendEntry(HotExtend, frozen=True, gc=False, kw_only=True):
    id: TaskId


class HotEnqueueBatch(HotBody, frozen=True):
    tasks: Annotated[list[EnqueueFields], Meta(min_length=1, max_length=MAX_BATCH)]

    def __post_init__(self) -> None:
        # Few of them differ.
        named = {task.queue for task in self.tasks} | {task.type or "" for task in self.tasks}
        check_names(named | {task.id or "" for task in self.tasks})
        for task in self.tasks:
            task.check_sizes()


class HotAckBatch(HotBody, frozen=True):
    items: Annotated[list[HotAckEntry], Meta(min_length=1, max_length=MAX_BATCH)]

    def __post_init__(self) -> None:
        check_names([item.id for item in self.items])
        for item in self.items:
            if item.result is not ABSENT:
                item.check_sizes()


class HotReleaseBatch(HotBody, frozen=True):
    items: Annotated[list[HotReleaseEntry], Meta(min_length=1, max_length=MAX_BATCH)]

    def __post_init__(self) -> None:
        check_names([item.id for item in self.items])


class HotExtendBatch(HotBody, frozen=True):
    items: Annotated[list[HotExtendEntry], Meta(min_length=1, max_length=MAX_BATCH)]

    def __post_init__(self) -> None:
        check_names([item.id for item in self.items])


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


class HotReader:
    """Reads the bodies of a model that are as they mostly are."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._decode = msgspec.json.Decoder(HOT_BODIES[model]).decode

    def read(self, body: bytes) -> HotBody | None:
        """The body, or None if it is for the model to read."""
        if NUL in body:
            return None
        try:
            # What is kept as it is must be UTF-8 too, and the decoder does not look into it.
            if not body.isascii():
                body.decode()
            return self._decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, ContentTooLarge, RecursionError):
            return None
