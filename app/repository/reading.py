"""Looking at tasks, and changing those that nobody works on."""

from dataclasses import asdict
from datetime import datetime

from app.domain.commands import AttemptKey, DeadLetterFilter, FinishedKey, LiveKey, Page, TaskEdit, TaskFilter
from app.domain.errors import TaskFinished, TaskLeased, TaskNotFound
from app.domain.task import LIVE_STATUSES, Attempt, Status, Task, TaskState
from app.domain.transitions import cancelled
from app.repository.connection import Row
from app.repository.dead_letters import list_dead_letters
from app.repository.moving import apply_moves, is_overdue, move_overdue_rows
from app.repository.records import attempt_of, finished_task_of, live_task_of, state_of
from app.repository.session import Session

# A list walks along so many rows for each task of a page before it looks for them queue by queue.
STEPS_A_TASK = 40
# Between a look at the live tasks and one at the finished, a task may be requeued: then the next look finds it.
LOOKS = 2


async def find_state(session: Session, tenant_id: str, task_id: str) -> TaskState | None:
    """What decides over the live task of that id, not locked."""
    row = await session.row("find_id_holders", tenant_id=tenant_id, ids=[task_id])
    return None if row is None else state_of(row)


async def is_task_overdue(session: Session, tenant_id: str, task_id: str) -> bool:
    """Whether time has made something else of the task than its row says."""
    state = await find_state(session, tenant_id, task_id)
    return state is not None and is_overdue(state, session)


async def move_task_if_overdue(session: Session, tenant_id: str, task_id: str) -> None:
    state = await find_state(session, tenant_id, task_id)
    if state is not None:
        await move_overdue_rows(session, tenant_id, [state])


async def get_task(session: Session, tenant_id: str, task_id: str) -> Task:
    for _ in range(LOOKS):
        row = await session.row("get_live", tenant_id=tenant_id, id=task_id, now=session.now)
        if row is not None:
            return live_task_of(row)
        row = await session.row("get_finished", tenant_id=tenant_id, id=task_id)
        if row is not None:
            return finished_task_of(row)
    raise TaskNotFound(task_id)


async def list_live(
    session: Session, tenant_id: str, task_filter: TaskFilter, limit: int, after: LiveKey | None
) -> Page[Task, LiveKey]:
    """A page, by a walk along the rows; where it finds few among very many others, by the queues' own indexes."""
    after_seq = after.seq if after else 0
    span = await session.row("span_of_tasks", after_seq=after_seq)
    if span is None or span["first_seq"] is None:
        return Page([], None)
    until_seq = span["first_seq"] + STEPS_A_TASK * limit
    rows = await session.rows(
        "list_live",
        tenant_id=tenant_id,
        **asdict(task_filter),
        after_seq=after_seq,
        until_seq=until_seq,
        limit=limit + 1,
        now=session.now,
    )
    if len(rows) <= limit and until_seq < span["last_seq"]:
        return await _list_by_queues(session, tenant_id, task_filter, limit, after_seq)
    next_key = LiveKey(rows[limit - 1]["seq"]) if len(rows) > limit else None
    return Page([live_task_of(row) for row in rows[:limit]], next_key)


async def _list_by_queues(
    session: Session, tenant_id: str, task_filter: TaskFilter, limit: int, after_seq: int
) -> Page[Task, LiveKey]:
    seqs = await _find_live(session, tenant_id, task_filter, limit + 1, after_seq)
    rows = await session.rows("read_live", seqs=seqs[:limit], now=session.now) if seqs else []
    tasks = [live_task_of(row) for row in rows if _is_asked_for(row["status"], task_filter)]
    # What time has changed meanwhile makes a page shorter, but not the last one.
    return Page(tasks, LiveKey(seqs[limit - 1]) if len(seqs) > limit else None)


async def _find_live(
    session: Session, tenant_id: str, task_filter: TaskFilter, limit: int, after_seq: int
) -> list[int]:
    """The rows of the next tasks that are, or may have become, what is asked for."""
    queues = await session.rows("list_queue_ids", tenant_id=tenant_id)
    queue_ids = [row["id"] for row in queues if task_filter.queue in {None, row["name"]}]
    # Workers may still have tasks of queues that are gone.
    gone = [row["queue_id"] for row in await session.rows("list_graves_with_leases", tenant_id=tenant_id)]
    asked = {"after_seq": after_seq, "limit": limit, "type": task_filter.type, "topic": task_filter.topic}
    status = task_filter.status
    found: list[Row] = []
    if status in {None, Status.READY}:
        found += await session.rows("find_ready", queue_ids=queue_ids, **asked)
    # What is due by now is ready, whether or not anybody has moved it.
    due_by = session.now if status is Status.READY else None
    if status is not Status.LEASED:
        found += await session.rows("find_scheduled", queue_ids=queue_ids, due_by=due_by, **asked)
    if status is not Status.SCHEDULED:
        held = [*queue_ids, *gone]
        found += await session.rows("find_leased", queue_ids=held, due_by=due_by, queue=task_filter.queue, **asked)
    return sorted(row["seq"] for row in found)[:limit]


def _is_asked_for(status: str, task_filter: TaskFilter) -> bool:
    return status in LIVE_STATUSES if task_filter.status is None else status == task_filter.status


async def list_finished(
    session: Session, tenant_id: str, task_filter: TaskFilter, limit: int, after: FinishedKey | None
) -> Page[Task, FinishedKey]:
    if task_filter.status is Status.DEAD:
        letters = DeadLetterFilter(task_filter.queue, task_filter.topic, task_filter.type)
        dead = await list_dead_letters(session, tenant_id, letters, limit, after)
        return Page([letter.task for letter in dead.items], dead.next_key)
    rows = await session.rows(
        "list_finished",
        tenant_id=tenant_id,
        **asdict(task_filter),
        after_at=after.finished_at if after else None,
        after_id=after.id if after else None,
        limit=limit + 1,
    )
    last = rows[limit - 1] if len(rows) > limit else None
    next_key = None if last is None else FinishedKey(last["finished_at"], last["row_id"])
    return Page([finished_task_of(row) for row in rows[:limit]], next_key)


async def list_attempts(
    session: Session, tenant_id: str, task_id: str, limit: int, after: AttemptKey | None
) -> Page[Attempt, AttemptKey]:
    """The attempts that ended, from the log, and behind them the one that runs, from the task itself."""
    task = await get_task(session, tenant_id, task_id)
    # Before the log: an attempt that ends between the two looks is then in the log at least.
    running = await _running_attempt(session, tenant_id, task_id)
    rows = await session.rows(
        "list_attempts",
        tenant_id=tenant_id,
        id=task_id,
        created_at=task.created_at,
        after_at=after.started_at if after else task.created_at,
        after_id=after.id if after else 0,
        limit=limit + 1,
    )
    ended = [attempt_of(row) for row in rows]
    started = {attempt.started_at for attempt in ended}
    attempts = ended + [attempt for attempt in running if attempt.started_at not in started]
    last = rows[limit - 1] if len(attempts) > limit else None
    next_key = None if last is None else AttemptKey(last["started_at"], last["id"])
    return Page(attempts[:limit], next_key)


async def _running_attempt(session: Session, tenant_id: str, task_id: str) -> list[Attempt]:
    state = await find_state(session, tenant_id, task_id)
    if state is None or state.leased_at is None:
        return []
    return [Attempt(state.attempts, state.lease_owner or None, state.leased_at, None, None, None)]


async def edit_task(session: Session, tenant_id: str, task_id: str, edit: TaskEdit) -> Task:
    """Changes a task that waits; what the change makes of it by itself (due, expired, dead) is made of it at once."""
    state = await _lock_live(session, tenant_id, task_id)
    if state.status is Status.LEASED:
        raise TaskLeased(task_id)
    available_at = edit.available_at or state.available_at
    await session.run(
        "edit_task",
        seq=state.seq,
        now=session.now,
        priority=edit.priority,
        max_attempts=edit.max_attempts,
        expires_at=edit.expires_at,
        available_at=available_at,
        status=_waiting_status(available_at, session.now),
    )
    await session.count_returns([state.queue_id])
    await move_task_if_overdue(session, tenant_id, task_id)
    return await get_task(session, tenant_id, task_id)


async def cancel_task(session: Session, tenant_id: str, task_id: str, *, force: bool) -> str:
    state = await _lock_live(session, tenant_id, task_id)
    if state.status is Status.LEASED and not force:
        raise TaskLeased(task_id)
    await apply_moves(session, tenant_id, [cancelled(state, session.now)])
    return state.queue


async def _lock_live(session: Session, tenant_id: str, task_id: str) -> TaskState:
    """The live task in the state that it has by now; raises if it is over or never was."""
    await move_task_if_overdue(session, tenant_id, task_id)
    for _ in range(LOOKS):
        row = await session.row("lock_tasks", tenant_id=tenant_id, ids=[task_id])
        if row is not None:
            return state_of(row)
        finished = await session.row("get_finished", tenant_id=tenant_id, id=task_id)
        if finished is not None:
            raise TaskFinished(task_id, finished["status"])
    raise TaskNotFound(task_id)


def _waiting_status(available_at: datetime, now: datetime) -> Status:
    return Status.SCHEDULED if available_at > now else Status.READY
