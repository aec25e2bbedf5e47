"""Dead letters: looking at them, sending them back, throwing them away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.domain.commands import DeadLetterFilter, FinishedKey, Page, RequeueRequest
from app.domain.errors import Conflict, DedupeConflict, TaskExists, TaskNotFound
from app.domain.queue import Queue
from app.domain.task import DeadLetter, Status
from app.repository.connection import Row
from app.repository.enqueueing import Key, find_holders
from app.repository.opening import open_queues
from app.repository.records import dead_letter_of
from app.repository.session import Scope, Session

BATCH = 500


@dataclass(frozen=True, slots=True)
class Count:
    """How many dead letters there are under a filter, and the last of them."""

    letters: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Span:
    """What a bulk call has still to look at, of the dead letters that were there when it began."""

    after_id: int
    last_id: int


@dataclass(slots=True)
class Taken:
    """The ids and keys that a bulk call has given out so far: what it only rehearses is not in the tables."""

    ids: set[str] = field(default_factory=set)
    keys: set[Key] = field(default_factory=set)

    def copy(self) -> "Taken":
        return Taken(set(self.ids), set(self.keys))


@dataclass(frozen=True, slots=True)
class Looked:
    """What one transaction of a bulk call did; `after_id` is None when nothing is left to look at."""

    queues: Sequence[str]
    skipped: int
    after_id: int | None
    taken: Taken | None = None


async def list_dead_letters(
    session: Session, tenant_id: str, letters: DeadLetterFilter, limit: int, after: FinishedKey | None
) -> Page[DeadLetter, FinishedKey]:
    rows = await session.rows(
        "list_dead_letters",
        tenant_id=tenant_id,
        **filter_parameters(letters),
        after_at=after.finished_at if after else None,
        after_id=after.id if after else None,
        limit=limit + 1,
    )
    last = rows[limit - 1] if len(rows) > limit else None
    next_key = None if last is None else FinishedKey(last["failed_at"], last["row_id"])
    return Page([dead_letter_of(row) for row in rows[:limit]], next_key)


async def get_dead_letter(session: Session, tenant_id: str, task_id: str) -> DeadLetter:
    page = await list_dead_letters(session, tenant_id, DeadLetterFilter(ids=[task_id]), 1, None)
    if not page.items:
        raise TaskNotFound(task_id)
    return page.items[0]


async def count_dead_letters(session: Session, tenant_id: str, letters: DeadLetterFilter) -> Count:
    row = await session.row("count_dead_letters", tenant_id=tenant_id, **filter_parameters(letters))
    return Count(0, 0) if row is None else Count(row["letters"], row["last_id"])


async def requeue_one(session: Session, tenant_id: str, task_id: str, request: RequeueRequest) -> str:
    """Sends the newest dead letter of a task back and tells its queue; raises a `Conflict` if it cannot be."""
    row = await _lock_newest(session, tenant_id, task_id)
    queues = await _open_queues_of(session, tenant_id, [row])
    conflict = (await _find_conflicts(session, tenant_id, [row], queues, Taken()))[0]
    if conflict is not None:
        raise conflict
    await _restore(session, [row], queues, request)
    return str(row["queue"])


async def requeue_some(
    session: Session, tenant_id: str, request: RequeueRequest, span: Span, limit: int, *, taken: Taken
) -> Looked:
    """Sends the next few back, oldest first; those whose id or key is taken are passed over."""
    rows = await _lock_some(session, tenant_id, request.filter, span, limit)
    queues = await _open_queues_of(session, tenant_id, rows)
    # A copy: this try may be run again, and has then given out nothing.
    taken = taken.copy() if request.dry_run else Taken()
    conflicts = await _find_conflicts(session, tenant_id, rows, queues, taken)
    free = [row for row, conflict in zip(rows, conflicts, strict=True) if conflict is None]
    await _restore(session, free, queues, request)
    after = rows[-1]["row_id"] if rows else None
    return Looked([row["queue"] for row in free], len(rows) - len(free), after, taken)


async def delete_one(session: Session, tenant_id: str, task_id: str) -> None:
    row = await _lock_newest(session, tenant_id, task_id)
    await session.run("delete_dead_letters", row_ids=[row["row_id"]])


async def delete_some(session: Session, tenant_id: str, letters: DeadLetterFilter, span: Span) -> Looked:
    rows = await _lock_some(session, tenant_id, letters, span, BATCH)
    if rows:
        await session.run("delete_dead_letters", row_ids=[row["row_id"] for row in rows])
    return Looked([row["queue"] for row in rows], 0, rows[-1]["row_id"] if rows else None)


async def _lock_newest(session: Session, tenant_id: str, task_id: str) -> Row:
    row = await session.row("lock_dead_letter", tenant_id=tenant_id, id=task_id)
    if row is None:
        raise TaskNotFound(task_id)
    return row


async def _lock_some(
    session: Session, tenant_id: str, letters: DeadLetterFilter, span: Span, limit: int
) -> Sequence[Row]:
    return await session.rows(
        "lock_dead_letters",
        tenant_id=tenant_id,
        **filter_parameters(letters),
        after_id=span.after_id,
        last_id=span.last_id,
        limit=min(limit, BATCH),
    )


async def _open_queues_of(session: Session, tenant_id: str, rows: Sequence[Row]) -> Mapping[str, Queue]:
    scope = Scope(tenant_id, {row["queue"] for row in rows})
    await session.open(scope, session.now)
    return await open_queues(session, scope)


async def _find_conflicts(
    session: Session, tenant_id: str, rows: Sequence[Row], queues: Mapping[str, Queue], taken: Taken
) -> list[Conflict | None]:
    """What stands against requeueing each of them: a live task, or one of them that comes before it."""
    keys = {_key(row, queues) for row in rows}
    holders = await find_holders(
        session, tenant_id, {row["task_id"] for row in rows}, {key for key in keys if key is not None}
    )
    ids, held = taken.ids | holders.ids, taken.keys | holders.keys.keys()
    conflicts: list[Conflict | None] = []
    for row in rows:
        key = _key(row, queues)
        if row["task_id"] in ids:
            conflicts.append(TaskExists(row["task_id"]))
        elif key in held:
            conflicts.append(DedupeConflict(row["task_id"]))
        else:
            conflicts.append(None)
            ids.add(row["task_id"])
            taken.ids.add(row["task_id"])
            if key is not None:
                held.add(key)
                taken.keys.add(key)
    return conflicts


async def _restore(session: Session, rows: Sequence[Row], queues: Mapping[str, Queue], request: RequeueRequest) -> None:
    if rows:
        letters = [{**_restored(row, request, session.now), "queue_id": queues[row["queue"]].id} for row in rows]
        await session.dialect.restore_dead_letters(session, letters)
        await session.run("delete_dead_letters", row_ids=[row["row_id"] for row in rows])
        # So many may take so long that others look behind them already.
        await session.count_returns({queues[row["queue"]].id for row in rows})


def _restored(row: Row, request: RequeueRequest, now: datetime) -> dict[str, object]:
    due_at = now + timedelta(seconds=request.delay_seconds)
    attempts = 0 if request.reset_attempts else row["attempts"]
    one_more = not request.reset_attempts and row["max_attempts"] > 0
    # A deadline that has passed would undo at once what the operator asks for.
    keeps_deadline = row["expires_at"] is not None and row["expires_at"] > due_at
    return {
        "row_id": row["row_id"],
        "status": Status.SCHEDULED if due_at > now else Status.READY,
        "attempts": attempts,
        "max_attempts": attempts + 1 if one_more else row["max_attempts"],
        "available_at": due_at,
        "expires_at": row["expires_at"] if keeps_deadline else None,
    }


def _key(row: Row, queues: Mapping[str, Queue]) -> Key | None:
    return None if row["dedupe_key"] is None else (queues[row["queue"]].id, row["dedupe_key"])


def filter_parameters(letters: DeadLetterFilter) -> dict[str, object]:
    return {
        "queue": letters.queue,
        "topic": letters.topic,
        "type": letters.type,
        "reason_contains": letters.reason_contains,
        "before": letters.before,
        "after": letters.after,
        "ids": None if letters.ids is None else list(letters.ids),
    }
