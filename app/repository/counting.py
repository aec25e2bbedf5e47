"""How many tasks a queue holds, and why one of them is not running."""

from app.domain.errors import TaskNotFound
from app.domain.queue import Queue, RateBucket
from app.domain.task import Status, Task, TaskState
from app.domain.topology import Explanation, QueueStats, Reason
from app.repository.moving import move_overdue
from app.repository.reading import find_state, get_task
from app.repository.session import Scope, Session

NO_QUEUE = 0


async def queue_stats(session: Session, tenant_id: str, name: str, bound: int | None) -> QueueStats:
    """The counts of a queue, each up to a bound if there is one; `exact` tells whether none has reached it."""
    queue = session.living_queues().get(name)
    queue_id = NO_QUEUE if queue is None else queue.id
    rows = await session.rows("count_of_queue", queue_id=queue_id, tenant_id=tenant_id, queue=name, bound=bound)
    counts = {Status(row["status"]): row["tasks"] for row in rows}
    # The first so many of very many tell nothing about the rest.
    countable = bound is None or counts[Status.READY] < bound
    by_priority = await session.rows("count_ready_by_priority", queue_id=queue_id, bound=bound) if countable else []
    oldest_at = min((row["oldest_at"] for row in by_priority), default=None)
    upcoming = await session.row("next_available", lanes=[{"queue_id": queue_id, "type": None}])
    return QueueStats(
        counts=counts,
        ready_by_priority={row["priority"]: row["tasks"] for row in by_priority},
        oldest_ready_seconds=None if oldest_at is None else max(0.0, (session.now - oldest_at).total_seconds()),
        next_available_at=None if upcoming is None else upcoming["next_at"],
        exact=bound is None or all(count < bound for count in counts.values()),
    )


async def explain_task(session: Session, tenant_id: str, task_id: str, bound: int) -> Explanation:
    """The first thing that stands between the task and a worker."""
    task = await get_task(session, tenant_id, task_id)
    state = await find_state(session, tenant_id, task_id)
    if state is None or task.finished_at is not None:
        return Explanation(Reason.FINISHED, f"The task is {task.status}.", {"status": task.status})
    if state.status is Status.LEASED:
        facts = {"lease_until": state.lease_until, "lease_owner": state.lease_owner or None}
        return Explanation(Reason.LEASED, "A worker has it.", facts)
    if state.status is Status.SCHEDULED:
        return Explanation(Reason.SCHEDULED, "It is not due yet.", {"available_at": state.available_at})
    await session.open(Scope(tenant_id, (state.queue,)), session.now)
    # Others that time has brought before it count too.
    await move_overdue(session, tenant_id, [state.queue_id])
    queue = session.queues.get(state.queue)
    if queue is None or queue.id != state.queue_id:
        # The queue was deleted since the task was looked at, and what waited in it is gone.
        raise TaskNotFound(task_id)
    held_back = await _held_back(session, queue)
    return held_back or await _in_line(session, task, state, bound)


async def _held_back(session: Session, queue: Queue) -> Explanation | None:
    """What holds the whole queue back."""
    settings = queue.settings
    if settings.paused:
        return Explanation(Reason.QUEUE_PAUSED, "Its queue is paused.", {"queue": queue.name})
    if settings.rate_per_second is not None:
        bucket = RateBucket(settings.rate_per_second, queue.rate_left, queue.rate_left_at)
        if bucket.allowed(session.now) <= 0:
            facts = {"rate_per_second": settings.rate_per_second, "next_available_at": bucket.next_at(session.now)}
            return Explanation(Reason.RATE_LIMITED, "Its queue has delivered all that its rate allows.", facts)
    if settings.concurrency_limit is not None:
        rows = await session.rows("count_leased", queue_ids=[queue.id], now=session.now)
        leased = rows[0]["leased"] if rows else 0
        if leased >= settings.concurrency_limit:
            facts = {"concurrency_limit": settings.concurrency_limit, "leased": leased}
            return Explanation(Reason.CONCURRENCY_LIMITED, "As many tasks of its queue run as may.", facts)
    return None


async def _in_line(session: Session, task: Task, state: TaskState, bound: int) -> Explanation:
    row = await session.row(
        "count_ahead",
        queue_id=state.queue_id,
        priority=task.priority,
        available_at=state.available_at,
        seq=state.seq,
        bound=bound,
    )
    ahead = 0 if row is None else row["ahead"]
    if ahead == 0:
        return Explanation(Reason.READY, "The next reserve gets it.", {"ahead": 0})
    more = " at least" if ahead >= bound else ""
    detail = f"There are{more} {ahead} tasks before it in its queue."
    return Explanation(Reason.WAITING_BEHIND, detail, {"ahead": ahead})
