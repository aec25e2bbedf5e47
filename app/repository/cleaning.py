"""Taking away: what waits in a queue, what has finished long ago, and what queues that are gone have left."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from app.domain.task import Status
from app.repository.connection import Row
from app.repository.graves import later, lease_ends
from app.repository.moving import move_overdue
from app.repository.opening import bury_queue
from app.repository.queue_records import queue_of
from app.repository.session import Session

BATCH = 1000
FINISHED = (Status.DONE, Status.EXPIRED, Status.CANCELLED)
# A grave stays a while: a task that was accepted while its queue was being deleted comes later.
GRAVE_AGE = timedelta(hours=1)
GRAVES_AT_ONCE = 10
# A key that is held no longer stays a while too: an enqueue that began before the window's end may look for it later.
TOMBSTONE_AGE = timedelta(minutes=2)
OPERATION_AGE = timedelta(days=7)


async def last_seq(session: Session) -> int:
    row = await session.row("last_seq")
    return 0 if row is None else int(row["last_seq"])


async def delete_waiting(session: Session, queue_id: int, last: int) -> int:
    """Deletes some of what waits in a queue, and tells how many."""
    deleted = 0
    for lock in ("lock_ready", "lock_scheduled"):
        rows = await session.rows(lock, queue_id=queue_id, last_seq=last, limit=BATCH)
        if rows:
            await session.run("delete_many", seqs=[row["seq"] for row in rows])
        deleted += len(rows)
    return deleted


async def delete_history_of_queue(session: Session, tenant_id: str, queue: str, before: datetime) -> int:
    """Deletes some of what finished in a queue before a moment, with its attempts, and tells how many."""
    deleted = 0
    for status in FINISHED:
        rows = await session.rows(
            "pick_history", tenant_id=tenant_id, queue=queue, status=status, before=before, limit=BATCH
        )
        await _delete_history(session, rows)
        deleted += len(rows)
    return deleted


async def drop_old_history(session: Session) -> int:
    """Deletes some of what anybody's queues need not keep any longer, with its attempts."""
    rows = await session.rows("pick_history_to_drop", now=session.now, limit=BATCH)
    await _delete_history(session, rows)
    return len(rows)


async def drop_old_tombstones(session: Session) -> int:
    """Deletes some of the dedupe keys that are held no longer; enqueues take what they need of them by themselves."""
    rows = await session.rows("lock_old_tombstones", before=session.now - TOMBSTONE_AGE, limit=BATCH)
    if rows:
        await session.run("delete_many", seqs=[row["seq"] for row in rows])
    return len(rows)


async def drop_old_dead_letters(session: Session) -> int:
    """Deletes some of the dead letters that their queues need not keep any longer, with their attempts."""
    dropped = 0
    for queue in await session.rows("queues_with_dlq_days"):
        rows = await session.rows(
            "lock_old_dead_letters",
            tenant_id=queue["tenant_id"],
            queue=queue["name"],
            before=session.now - timedelta(days=queue["dlq_days"]),
            limit=BATCH,
        )
        if rows:
            await _delete_attempts(session, rows)
            await session.run("delete_dead_letters", row_ids=[row["row_id"] for row in rows])
        dropped += len(rows)
    return dropped


async def drop_old_operations(session: Session) -> int:
    await session.run("delete_old_operations", before=session.now - OPERATION_AGE)
    return 0


async def bury_ended_queues(session: Session) -> int:
    rows = await session.rows("ended_queues", now=session.now, limit=BATCH)
    for row in rows:
        await bury_queue(session, queue_of(row))
    return len(rows)


async def clear_graves(session: Session) -> int:
    """Deletes some of what a few of the queues that are gone have left, and tells whether there may be more.

    Leased tasks stay until they are settled or lost.
    """
    everything = await last_seq(session)
    graves = await session.rows("lock_graves_to_clear", now=session.now, limit=GRAVES_AT_ONCE)
    cleared, empty = 0, []
    for grave in graves:
        queue_id = grave["queue_id"]
        done = await move_overdue(session, grave["tenant_id"], [queue_id])
        done += await delete_waiting(session, queue_id, everything)
        cleared += done
        empty += [] if done else [grave]
    await _close_graves(session, empty)
    return cleared or int(len(graves) == GRAVES_AT_ONCE)


async def _close_graves(session: Session, graves: Sequence[Row]) -> None:
    """Graves with nothing to clear away: old ones go, the others are looked at again later."""
    if not graves:
        return
    ends = await lease_ends(session, graves)
    for grave in graves:
        if grave["queue_id"] not in ends and grave["deleted_at"] <= session.now - GRAVE_AGE:
            await session.run("delete_grave", queue_id=grave["queue_id"])
    looks = later(graves, ends, session.now)
    await session.run_each("clear_grave_later", [{"queue_id": look["queue_id"], "at": look["at"]} for look in looks])


async def overdue_queues(session: Session, after_id: int, limit: int) -> tuple[dict[str, list[int]], int]:
    """Queues by tenant in which something is overdue, out of the next few of all; and where those end."""
    queue_ids = [row["id"] for row in await session.rows("next_queue_ids", after_id=after_id, limit=limit)]
    if not queue_ids:
        return {}, 0
    found: dict[str, list[int]] = {}
    for row in await session.rows("queues_with_overdue", queue_ids=queue_ids, now=session.now):
        found.setdefault(row["tenant_id"], []).append(row["queue_id"])
    return found, queue_ids[-1]


async def _delete_history(session: Session, rows: Sequence[Row]) -> None:
    if rows:
        await _delete_attempts(session, rows)
        await session.run("delete_history", row_ids=[row["row_id"] for row in rows])


async def _delete_attempts(session: Session, rows: Sequence[Row]) -> None:
    tasks = [
        {"tenant_id": row["tenant_id"], "task_id": row["task_id"], "finished_at": row["finished_at"]} for row in rows
    ]
    await session.run("delete_attempts_of", tasks=tasks)
