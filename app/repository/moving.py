"""Writing down moves that were decided on locked rows, and making those that time alone has decided."""

from collections.abc import Sequence

from app.domain.task import LIVE_STATUSES, Status, TaskState
from app.domain.transitions import Move, is_forgotten, overdue
from app.repository.records import leaves_tombstone, move_record, state_of
from app.repository.session import Session

OVERDUE_BATCH = 1000


async def apply_moves(session: Session, tenant_id: str, moves: Sequence[Move]) -> None:
    """Writes the moves: archived or buried first, then gone from the live tasks, all in one transaction."""
    await session.log_attempts(tenant_id, [move.attempt for move in moves if move.attempt is not None])
    await _write(session, "return_many", [move for move in moves if move.status in LIVE_STATUSES])
    dead = [move for move in moves if move.status is Status.DEAD]
    await _write(session, "bury_many", dead)
    finished = [move for move in moves if move.status not in LIVE_STATUSES and move.status is not Status.DEAD]
    await session.dialect.archive(session, finished)
    await _write(session, "entomb_many", [move for move in finished if leaves_tombstone(move)])
    gone = [move.task.seq for move in (*dead, *finished) if not leaves_tombstone(move)]
    if gone:
        await session.run("delete_many", seqs=gone)
    await session.count_returns({move.task.queue_id for move in moves if move.status is Status.READY})


async def _write(session: Session, statement: str, moves: Sequence[Move]) -> None:
    if moves:
        await session.run(statement, moves=[move_record(move) for move in moves])


async def move_overdue(session: Session, tenant_id: str, queue_ids: Sequence[int]) -> int:
    """Moves what time has changed in these queues, a batch at most, and tells how many it found."""
    if not queue_ids:
        return 0
    rows = await session.rows("lock_overdue", queue_ids=list(queue_ids), now=session.now, limit=OVERDUE_BATCH)
    return await _move(session, tenant_id, [state_of(row) for row in rows])


async def move_overdue_rows(session: Session, tenant_id: str, states: Sequence[TaskState]) -> bool:
    """Moves those of the given tasks that time has changed; whether there were any."""
    seqs = [state.seq for state in states if is_overdue(state, session)]
    if not seqs:
        return False
    # Looked at again under the lock: a task that was completed meanwhile is never overwritten.
    rows = await session.rows("lock_rows", seqs=seqs)
    await _move(session, tenant_id, [state_of(row) for row in rows])
    return True


def is_overdue(state: TaskState, session: Session) -> bool:
    return is_forgotten(state, session.now) or overdue(state, session.now) is not None


async def _move(session: Session, tenant_id: str, states: Sequence[TaskState]) -> int:
    forgotten = [state.seq for state in states if is_forgotten(state, session.now)]
    if forgotten:
        await session.run("delete_many", seqs=forgotten)
    kept = [state for state in states if not is_forgotten(state, session.now)]
    moves = [move for state in kept if (move := overdue(state, session.now)) is not None]
    await apply_moves(session, tenant_id, moves)
    return len(forgotten) + len(moves)
