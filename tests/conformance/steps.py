"""The steps that tests are made of: a tenant's calls, with a default for whatever a test does not care about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypedDict, Unpack

from msgspec.structs import replace

from app.domain.backoff import BackoffOverride
from app.domain.commands import (
    AckItem,
    AttemptKey,
    DeadLetterFilter,
    Extended,
    ExtendItem,
    ExtendOutcome,
    FailItem,
    FinishedKey,
    LiveKey,
    NackItem,
    Page,
    ReleaseItem,
    Requeued,
    RequeueRequest,
    Reserved,
    ReserveRequest,
    Settled,
    SettleOutcome,
    TaskEdit,
    TaskFilter,
)
from app.domain.identifiers import new_task_id
from app.domain.lease_token import lease_token_hash
from app.domain.task import (
    DEFAULT_PRIORITY,
    Attempt,
    DeadLetter,
    Enqueued,
    NewTask,
    Payload,
    ReservedTask,
    Status,
    Task,
)
from app.repository.protocol import Repository

T0 = datetime(2030, 1, 1, 12, tzinfo=UTC)
QUEUE = "work"
WORKER = "worker-1"
LEASE_SECONDS = 30.0
TIMEOUT_SECONDS = 10.0
MAX_BYTES = 8 * 1024 * 1024
LIVE = TaskFilter()
ANY_LETTER = DeadLetterFilter()
NO_JITTER = BackoffOverride(base_seconds=5, factor=2, max_seconds=3600, jitter=0)

Verb = Literal["ack", "nack", "release", "fail", "extend"]
VERBS: Sequence[Verb] = ("ack", "nack", "release", "fail", "extend")


def at(seconds: float) -> datetime:
    """That long after the test's first moment."""
    return T0 + timedelta(seconds=seconds)


def json_payload(text: str) -> Payload:
    return Payload(text.encode(), is_json=True, content_type="application/json")


class TaskFields(TypedDict, total=False):
    """What a test may say of a new task."""

    queue: str
    topic: str
    payload: Payload
    max_attempts: int | None
    type: str
    meta: str
    priority: int
    dedupe_key: str
    dedupe_seconds: float
    delay_seconds: float
    available_at: datetime
    ttl_seconds: float
    expires_at: datetime
    timeout_seconds: float
    publish_id: str


class ReserveFields(TypedDict, total=False):
    """What a test may say of a reserve."""

    queues: Sequence[str]
    limit: int
    lease_seconds: float | None
    max_bytes: int
    types: Sequence[str]
    exclude_ids: Sequence[str]
    worker_id: str | None


class RequeueFields(TypedDict, total=False):
    """What a test may say of a requeue."""

    limit: int
    reset_attempts: bool
    delay_seconds: float
    dry_run: bool


def new_task(task_id: str | None = None, **fields: Unpack[TaskFields]) -> NewTask:
    """A task to enqueue, with an id of its own unless one is given."""
    return NewTask(
        id=task_id or new_task_id(),
        id_is_given=task_id is not None,
        queue=fields.get("queue", QUEUE),
        topic=fields.get("topic", fields.get("queue", QUEUE)),
        payload=fields.get("payload", json_payload("{}")),
        max_attempts=fields.get("max_attempts", 5),
        type=fields.get("type", ""),
        meta=fields.get("meta", "{}"),
        priority=fields.get("priority", DEFAULT_PRIORITY),
        dedupe_key=fields.get("dedupe_key"),
        dedupe_seconds=fields.get("dedupe_seconds", 0.0),
        delay_seconds=fields.get("delay_seconds", 0.0),
        available_at=fields.get("available_at"),
        ttl_seconds=fields.get("ttl_seconds"),
        expires_at=fields.get("expires_at"),
        timeout_seconds=fields.get("timeout_seconds"),
        publish_id=fields.get("publish_id"),
    )


def ids(tasks: Sequence[Enqueued | Task | ReservedTask | DeadLetter]) -> list[str]:
    """The ids of tasks, whatever they come wrapped in."""
    return [task.task.id if isinstance(task, ReservedTask | DeadLetter) else task.id for task in tasks]


def forged(leased: ReservedTask) -> ReservedTask:
    """The same task with a token that nobody was given."""
    return replace(leased, lease_token="not-the-token")


def settled(outcome: SettleOutcome) -> Settled:
    """The outcome, which must be a success."""
    assert isinstance(outcome, Settled), outcome
    return outcome


def next_try(outcome: SettleOutcome) -> datetime:
    """When the task, which was given back, may be taken again."""
    available_at = settled(outcome).available_at
    assert available_at is not None, outcome
    return available_at


def extended(outcome: ExtendOutcome) -> Extended:
    """The outcome, which must be a success."""
    assert isinstance(outcome, Extended), outcome
    return outcome


def ack_item(leased: ReservedTask, result: str | None = None) -> AckItem:
    return AckItem(leased.task.id, lease_token_hash(leased.lease_token), result)


def nack_item(
    leased: ReservedTask,
    *,
    error: str | None = None,
    delay_seconds: float | None = None,
    retry_at: datetime | None = None,
    backoff: BackoffOverride = NO_JITTER,
) -> NackItem:
    token_hash = lease_token_hash(leased.lease_token)
    return NackItem(leased.task.id, token_hash, backoff, error, delay_seconds, retry_at)


def release_item(leased: ReservedTask) -> ReleaseItem:
    return ReleaseItem(leased.task.id, lease_token_hash(leased.lease_token))


def fail_item(leased: ReservedTask, reason: str = "broken") -> FailItem:
    return FailItem(leased.task.id, lease_token_hash(leased.lease_token), reason)


def extend_item(leased: ReservedTask, lease_seconds: float = LEASE_SECONDS) -> ExtendItem:
    return ExtendItem(leased.task.id, lease_token_hash(leased.lease_token), lease_seconds)


@dataclass(frozen=True)
class Store:
    """A repository as one tenant sees it; everything happens at T0 unless said otherwise."""

    repository: Repository
    tenant: str

    async def enqueue(self, task_id: str | None = None, now: datetime = T0, **fields: Unpack[TaskFields]) -> Enqueued:
        [enqueued] = await self.enqueue_many(new_task(task_id, **fields), now=now)
        return enqueued

    async def enqueue_many(self, *tasks: NewTask, now: datetime = T0) -> list[Enqueued]:
        return await self.repository.enqueue_many(self.tenant, tasks, now)

    async def reserve(self, now: datetime = T0, **fields: Unpack[ReserveFields]) -> Reserved:
        request = ReserveRequest(
            tenant_id=self.tenant,
            queues=fields.get("queues", (QUEUE,)),
            limit=fields.get("limit", 1),
            lease_seconds=fields.get("lease_seconds", LEASE_SECONDS),
            max_bytes=fields.get("max_bytes", MAX_BYTES),
            types=fields.get("types", ()),
            exclude_ids=fields.get("exclude_ids", ()),
            worker_id=fields.get("worker_id", WORKER),
        )
        [reserved] = await self.repository.reserve_many([request], now)
        return reserved

    async def reserve_ids(self, now: datetime = T0, **fields: Unpack[ReserveFields]) -> list[str]:
        """The ids of what is reserved, in order, as many as there are unless limited."""
        fields.setdefault("limit", 100)
        return ids((await self.reserve(now, **fields)).tasks)

    async def reserve_one(self, now: datetime = T0, **fields: Unpack[ReserveFields]) -> ReservedTask:
        [leased] = (await self.reserve(now, **fields)).tasks
        return leased

    async def lease(self, task_id: str | None = None, now: datetime = T0, **fields: Unpack[TaskFields]) -> ReservedTask:
        """A new task, leased to the worker for LEASE_SECONDS."""
        enqueued = await self.enqueue(task_id, now, **fields)
        leased = await self.reserve_one(now, queues=[enqueued.queue])
        assert leased.task.id == enqueued.id
        return leased

    async def ack(self, leased: ReservedTask, now: datetime = T0, result: str | None = None) -> SettleOutcome:
        [outcome] = await self.repository.ack_many(self.tenant, [ack_item(leased, result)], now)
        return outcome

    async def nack(
        self,
        leased: ReservedTask,
        now: datetime = T0,
        *,
        error: str | None = None,
        delay_seconds: float | None = None,
        retry_at: datetime | None = None,
        backoff: BackoffOverride = NO_JITTER,
    ) -> SettleOutcome:
        item = nack_item(leased, error=error, delay_seconds=delay_seconds, retry_at=retry_at, backoff=backoff)
        [outcome] = await self.repository.nack_many(self.tenant, [item], now)
        return outcome

    async def release(self, leased: ReservedTask, now: datetime = T0) -> SettleOutcome:
        [outcome] = await self.repository.release_many(self.tenant, [release_item(leased)], now)
        return outcome

    async def fail(self, leased: ReservedTask, now: datetime = T0, reason: str = "broken") -> SettleOutcome:
        [outcome] = await self.repository.fail_many(self.tenant, [fail_item(leased, reason)], now)
        return outcome

    async def extend(
        self, leased: ReservedTask, now: datetime = T0, lease_seconds: float = LEASE_SECONDS
    ) -> ExtendOutcome:
        [outcome] = await self.repository.extend_many(self.tenant, [extend_item(leased, lease_seconds)], now)
        return outcome

    async def settle(self, verb: Verb, leased: ReservedTask, now: datetime = T0) -> SettleOutcome | ExtendOutcome:
        """Whatever a worker may do with its lease."""
        match verb:
            case "ack":
                return await self.ack(leased, now)
            case "nack":
                return await self.nack(leased, now)
            case "release":
                return await self.release(leased, now)
            case "fail":
                return await self.fail(leased, now)
            case "extend":
                return await self.extend(leased, now)

    async def finish(
        self, task_id: str | None = None, now: datetime = T0, **fields: Unpack[TaskFields]
    ) -> ReservedTask:
        """A new task, leased and acked; the lease that acked it is returned."""
        leased = await self.lease(task_id, now, **fields)
        settled(await self.ack(leased, now))
        return leased

    async def bury(
        self, task_id: str | None = None, now: datetime = T0, reason: str = "broken", **fields: Unpack[TaskFields]
    ) -> ReservedTask:
        """A new task, leased and failed; the lease that failed it is returned."""
        leased = await self.lease(task_id, now, **fields)
        settled(await self.fail(leased, now, reason))
        return leased

    async def bury_many(self, count: int, now: datetime = T0, **fields: Unpack[TaskFields]) -> list[str]:
        """That many new dead tasks, by batches."""
        buried: list[str] = []
        while len(buried) < count:
            size = min(1000, count - len(buried))
            await self.enqueue_many(*(new_task(**fields) for _ in range(size)), now=now)
            leased = (await self.reserve(now, limit=size)).tasks
            await self.repository.fail_many(self.tenant, [fail_item(task) for task in leased], now)
            buried.extend(ids(leased))
        return buried

    async def get(self, task_id: str, now: datetime = T0) -> Task:
        return await self.repository.get_task(self.tenant, task_id, now)

    async def status(self, task_id: str, now: datetime = T0) -> Status:
        return (await self.get(task_id, now)).status

    async def attempts(self, task_id: str, now: datetime = T0) -> list[Attempt]:
        """All of the attempts of a task."""
        return list((await self.list_attempts(task_id, now=now)).items)

    async def list_attempts(
        self, task_id: str, *, limit: int = 100, after: AttemptKey | None = None, now: datetime = T0
    ) -> Page[Attempt, AttemptKey]:
        return await self.repository.list_attempts(self.tenant, task_id, limit, after, now)

    async def list_live(
        self,
        task_filter: TaskFilter = LIVE,
        *,
        limit: int = 100,
        after: LiveKey | None = None,
        now: datetime = T0,
    ) -> Page[Task, LiveKey]:
        return await self.repository.list_live(self.tenant, task_filter, limit, after, now)

    async def list_finished(
        self, task_filter: TaskFilter, *, limit: int = 100, after: FinishedKey | None = None, now: datetime = T0
    ) -> Page[Task, FinishedKey]:
        return await self.repository.list_finished(self.tenant, task_filter, limit, after, now)

    async def edit(self, task_id: str, edit: TaskEdit, now: datetime = T0) -> Task:
        return await self.repository.edit_task(self.tenant, task_id, edit, now)

    async def cancel(self, task_id: str, now: datetime = T0, *, force: bool = False) -> str:
        return await self.repository.cancel_task(self.tenant, task_id, force=force, now=now)

    async def dead_letter(self, task_id: str, now: datetime = T0) -> DeadLetter:
        return await self.repository.get_dead_letter(self.tenant, task_id, now)

    async def list_dead_letters(
        self,
        letters: DeadLetterFilter = ANY_LETTER,
        *,
        limit: int = 100,
        after: FinishedKey | None = None,
        now: datetime = T0,
    ) -> Page[DeadLetter, FinishedKey]:
        return await self.repository.list_dead_letters(self.tenant, letters, limit, after, now)

    async def dead_ids(
        self,
        letters: DeadLetterFilter = ANY_LETTER,
        now: datetime = T0,
    ) -> list[str]:
        return ids((await self.list_dead_letters(letters, now=now)).items)

    async def requeue(self, task_id: str, now: datetime = T0, **fields: Unpack[RequeueFields]) -> Requeued:
        request = RequeueRequest(ANY_LETTER, **fields)
        return await self.repository.requeue_dead_letter(self.tenant, task_id, request, now)

    async def requeue_many(
        self,
        letters: DeadLetterFilter = ANY_LETTER,
        now: datetime = T0,
        **fields: Unpack[RequeueFields],
    ) -> Requeued:
        return await self.repository.requeue_dead_letters(self.tenant, RequeueRequest(letters, **fields), now)

    async def purge(
        self,
        letters: DeadLetterFilter = ANY_LETTER,
        now: datetime = T0,
        *,
        dry_run: bool = False,
    ) -> int:
        return await self.repository.purge_dead_letters(self.tenant, letters, dry_run=dry_run, now=now)

    async def delete_dead_letter(self, task_id: str, now: datetime = T0) -> None:
        await self.repository.delete_dead_letter(self.tenant, task_id, now)
