"""Accepting new tasks: dedupe keys and ids are decided by unique indexes, whoever else enqueues at the same moment."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.domain.errors import TaskExists
from app.domain.queue import Queue
from app.domain.task import Enqueued, NewTask, Status, TaskState
from app.repository.moving import move_overdue_rows
from app.repository.opening import open_queues
from app.repository.records import state_of
from app.repository.session import Scope, Session

# A queue's id, and a dedupe key in it.
Key = tuple[int, str]
BatchOutcome = list[Enqueued] | TaskExists


class Holders:
    """Who has which id and which dedupe key."""

    def __init__(self, by_id: Sequence[TaskState], by_key: Sequence[TaskState]) -> None:
        self.ids = {state.id for state in by_id}
        self.keys = {(state.queue_id, state.dedupe_key or ""): state for state in by_key}


async def find_holders(session: Session, tenant_id: str, ids: Collection[str], keys: Collection[Key]) -> Holders:
    """Those who hold these ids and keys now: what time has ended gives them up first."""
    while True:
        by_id = await _by_id(session, tenant_id, ids)
        by_key = await _by_key(session, keys)
        if not await move_overdue_rows(session, tenant_id, [*by_id, *by_key]):
            return Holders(by_id, by_key)


async def enqueue_batches(session: Session, scope: Scope, batches: Sequence[Sequence[NewTask]]) -> list[BatchOutcome]:
    """Accepts all tasks of a batch, or none if an id is taken; raises `Raced` to be run again."""
    queues = await open_queues(session, scope)
    tasks = [task for batch in batches for task in batch]
    keys = {key for task in tasks if (key := _key(task, queues)) is not None}
    given = {task.id for task in tasks if task.id_is_given}
    holders = await find_holders(session, scope.tenant_id, given, keys)
    accepting = Accepting(session, queues, holders)
    outcomes = [accepting.take(batch) for batch in batches]
    if accepting.accepted:
        records = [_record(task, queues[task.queue], session) for task in accepting.accepted.values()]
        await session.dialect.insert_tasks(session, scope.tenant_id, records)
        # A task that is due since a while stands before others that are ready already.
        await session.count_returns({task["queue_id"] for task in records if task["available_at"] < session.now})
    return outcomes


async def enqueue_many(session: Session, scope: Scope, tasks: Sequence[NewTask]) -> list[Enqueued]:
    """Accepts all of the tasks, or none: raises `TaskExists`."""
    [outcome] = await enqueue_batches(session, scope, [tasks])
    if isinstance(outcome, TaskExists):
        raise outcome
    return outcome


class Accepting:
    """What is accepted in one transaction, batch by batch: the keys and ids of one batch are taken for the next."""

    def __init__(self, session: Session, queues: Mapping[str, Queue], holders: Holders) -> None:
        self.accepted: dict[str, NewTask] = {}
        self._session = session
        self._queues = queues
        self._ids = holders.ids
        self._by_key = {key: _existing(state) for key, state in holders.keys.items()}

    def take(self, batch: Sequence[NewTask]) -> BatchOutcome:
        """All tasks of the batch, or none."""
        taken: dict[str, NewTask] = {}
        by_key: dict[Key, Enqueued] = {}
        outcomes: list[Enqueued] = []
        for task in batch:
            key = _key(task, self._queues)
            holder = None if key is None else by_key.get(key) or self._by_key.get(key)
            if holder is not None:
                outcomes.append(holder)
                continue
            if task.id in self._ids or task.id in self.accepted or task.id in taken:
                return TaskExists(task.id)
            taken[task.id] = task
            outcomes.append(accepted(task, self._session.now, existed=False))
            if key is not None:
                by_key[key] = accepted(task, self._session.now, existed=True)
        self.accepted |= taken
        self._by_key |= by_key
        return outcomes


def _key(task: NewTask, queues: Mapping[str, Queue]) -> Key | None:
    return None if task.dedupe_key is None else (queues[task.queue].id, task.dedupe_key)


async def _by_id(session: Session, tenant_id: str, ids: Collection[str]) -> list[TaskState]:
    if not ids:
        return []
    rows = await session.rows("find_id_holders", tenant_id=tenant_id, ids=sorted(ids))
    return [state_of(row) for row in rows]


async def _by_key(session: Session, keys: Collection[Key]) -> list[TaskState]:
    if not keys:
        return []
    wanted = [{"queue_id": queue_id, "dedupe_key": key} for queue_id, key in sorted(keys)]
    rows = await session.rows("find_key_holders", keys=wanted)
    return [state_of(row) for row in rows]


def _existing(state: TaskState) -> Enqueued:
    task_id = state.tombstone_id if state.id is None else state.id
    return Enqueued(task_id or "", state.queue, state.status, state.available_at, existed=True)


def accepted(task: NewTask, now: datetime, *, existed: bool) -> Enqueued:
    due_at, expires_at = task.due_at(now), task.expiry_at(now)
    # A task that comes too late is accepted, and over: the row says so as soon as somebody looks.
    too_late = expires_at is not None and expires_at <= now
    status = Status.EXPIRED if too_late else _status(due_at, now)
    return Enqueued(task.id, task.queue, status, due_at, existed)


def _status(due_at: datetime, now: datetime) -> Status:
    return Status.SCHEDULED if due_at > now else Status.READY


def _record(task: NewTask, queue: Queue, session: Session) -> dict[str, Any]:
    return {
        "queue_id": queue.id,
        "id": task.id,
        "queue": task.queue,
        "topic": task.topic,
        "publish_id": task.publish_id,
        "type": task.type,
        "payload": task.payload.data,
        "payload_is_json": task.payload.is_json,
        "content_type": task.payload.content_type,
        "meta": task.meta,
        "size": task.size(),
        "priority": task.priority,
        "dedupe_key": task.dedupe_key,
        "dedupe_seconds": task.dedupe_seconds,
        "status": _status(task.due_at(session.now), session.now),
        "max_attempts": queue.settings.max_attempts if task.max_attempts is None else task.max_attempts,
        "available_at": task.due_at(session.now),
        "expires_at": task.expiry_at(session.now),
        "timeout_seconds": task.timeout_seconds,
    }
