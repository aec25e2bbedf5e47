"""What a worker may do with a task while its lease lasts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from app.domain.commands import Extended, ExtendItem, ExtendOutcome, LeaseRef, Settled, SettleOutcome
from app.domain.errors import InvalidRequest, LeaseExpired, LeaseMismatch, LeaseRefused, TaskNotFound, TaskNotLeased
from app.domain.task import Status, TaskState, TokenFate
from app.domain.transitions import Move, refusal
from app.repository.connection import Row
from app.repository.moving import apply_moves
from app.repository.records import state_of
from app.repository.session import Session

Item = TypeVar("Item", bound=LeaseRef)
Refusal = LeaseRefused | TaskNotFound


async def settle_many(
    session: Session,
    tenant_id: str,
    items: Sequence[Item],
    decide: Callable[[TaskState, Item, datetime], Move],
    repeatable: TokenFate | None = None,
) -> list[SettleOutcome]:
    """Moves each task whose token is right, and says of the others why not.

    `repeatable`: the fate of a token that settled its task in this very way before, which is a success again.
    """
    moves: dict[str, Move] = {}
    outcomes: list[SettleOutcome] = []
    states = await _lock_states(session, tenant_id, {item.id for item in items})
    for item, found in zip(items, await _examine(session, tenant_id, items, states, repeatable), strict=True):
        if isinstance(found, LeaseMismatch) and item.id in moves:
            # Its lease has ended by an item before this one.
            outcomes.append(TaskNotLeased(item.id))
        elif not isinstance(found, TaskState):
            outcomes.append(found)
        elif item.id in moves and repeatable is None:
            outcomes.append(TaskNotLeased(item.id))
        else:
            move = moves.setdefault(item.id, decide(found, item, session.now))
            outcomes.append(Settled(item.id, found.queue, move.status, move.attempts, move.available_at))
    await apply_moves(session, tenant_id, list(moves.values()))
    return outcomes


async def extend_many(session: Session, tenant_id: str, items: Sequence[ExtendItem]) -> list[ExtendOutcome]:
    """Lets each lease whose token is right end that long from now."""
    states = await _lock_states(session, tenant_id, {item.id for item in items})
    await _hold_limits(session, states)
    outcomes: list[ExtendOutcome] = []
    ends: dict[int, datetime] = {}
    for item, found in zip(items, await _examine(session, tenant_id, items, states, None), strict=True):
        if isinstance(found, TaskState):
            if (refused := _too_long(found, item)) is not None:
                outcomes.append(refused)
                continue
            ends[found.seq] = session.now + timedelta(seconds=item.lease_seconds)
            outcomes.append(Extended(item.id, found.queue, ends[found.seq], session.now))
        elif not isinstance(found, Settled):
            outcomes.append(found)
    if ends:
        moves = [{"seq": seq, "lease_until": end} for seq, end in ends.items()]
        await session.run("extend_many", moves=moves, now=session.now)
    return outcomes


async def _hold_limits(session: Session, states: Mapping[str, TaskState]) -> None:
    """Holds the rows of queues with a concurrency limit, in order of name, and looks at the clock again.

    Otherwise a reserve could count a lease as over while it is being extended, and give its place to another.
    """
    limited = {state.queue_id for state in states.values() if state.policy.concurrency_limit is not None}
    if limited:
        await session.rows("lock_queues", queue_ids=sorted(limited))
        await session.look_at_clock_again()


def _too_long(task: TaskState, item: ExtendItem) -> InvalidRequest | None:
    longest = task.policy.max_lease_seconds
    if item.lease_seconds <= longest:
        return None
    return InvalidRequest(
        f"lease_seconds is over the max_lease_seconds of the queue {task.queue!r}, {longest:g}",
        location=("body", "lease_seconds"),
    )


async def _examine(
    session: Session,
    tenant_id: str,
    items: Sequence[LeaseRef],
    states: dict[str, TaskState],
    repeatable: TokenFate | None,
) -> list[TaskState | SettleOutcome]:
    """For each item the locked task if its token gives the right to it, else the answer."""
    finished = await _find_finished(
        session, tenant_id, [i for i in items if not _is_held(states.get(i.id), i, session.now)]
    )
    # Between the two looks a dead task may have been requeued: then it is live.
    missing = {item.id for item in items} - states.keys() - finished.keys()
    states |= await _lock_states(session, tenant_id, missing)
    held = {item for item in items if _is_held(states.get(item.id), item, session.now)}
    return [
        states[item.id]
        if item in held
        else _answer(item, states.get(item.id), finished.get(item.id, []), repeatable, session.now)
        for item in items
    ]


async def _lock_states(session: Session, tenant_id: str, ids: Collection[str]) -> dict[str, TaskState]:
    if not ids:
        return {}
    rows = await session.rows("lock_tasks", tenant_id=tenant_id, ids=sorted(ids))
    return {row["id"]: state_of(row) for row in rows}


def _is_held(state: TaskState | None, item: LeaseRef, now: datetime) -> bool:
    return state is not None and refusal(state, item.token_hash, now) is None


async def _find_finished(session: Session, tenant_id: str, items: Sequence[LeaseRef]) -> Mapping[str, list[Row]]:
    finished: dict[str, list[Row]] = {}
    if items:
        ids = sorted({item.id for item in items})
        for row in await session.rows("find_finished", tenant_id=tenant_id, ids=ids):
            finished.setdefault(row["task_id"], []).append(row)
    return finished


def _answer(
    item: LeaseRef, state: TaskState | None, finished: Sequence[Row], repeatable: TokenFate | None, now: datetime
) -> SettleOutcome:
    """A success again if this token did the same before, else the reason why not."""
    for row in finished:
        if _did(item, repeatable, row["last_token_hash"], row["last_token_fate"], row["failed_token_hash"]):
            status = Status.DEAD if repeatable is TokenFate.FAILED else Status.DONE
            return Settled(item.id, row["queue"], status)
    if state is not None:
        # A task that was requeued since is still one that this token failed.
        if _did(item, repeatable, state.last_token_hash, state.last_token_fate, state.failed_token_hash):
            return Settled(item.id, state.queue, Status.DEAD)
        return refusal(state, item.token_hash, now) or TaskNotLeased(item.id)
    lost = any(
        (row["last_token_hash"], row["last_token_fate"]) == (item.token_hash, TokenFate.LOST) for row in finished
    )
    if lost:
        return LeaseExpired(item.id)
    return TaskNotLeased(item.id) if finished else TaskNotFound(item.id)


def _did(
    item: LeaseRef, fate: TokenFate | None, last_hash: str | None, last_fate: str | None, failed_hash: str | None
) -> bool:
    """Whether the token settled the task in this way before."""
    if fate is None:
        return False
    return (last_hash, last_fate) == (item.token_hash, fate) or (
        fate is TokenFate.FAILED and failed_hash == item.token_hash
    )
