"""Leasing tasks to workers."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from app.domain.commands import Reserved, ReserveRequest
from app.domain.errors import InvalidRequest
from app.domain.lease_token import new_lease_token
from app.domain.queue import DEFAULT_QUEUE_SETTINGS, Queue
from app.domain.task import ReservedTask
from app.repository.dialect import Claimed, Lane
from app.repository.limiting import Allowance, allow, take
from app.repository.moving import OVERDUE_BATCH, move_overdue
from app.repository.records import live_task_of
from app.repository.session import Session

MAX_ROUNDS = 5


async def reserve_many(session: Session, request: ReserveRequest) -> Reserved:
    """Leases what is first in the queues by now, whether or not anybody has moved there what became due."""
    _check_lease_seconds(session, request)
    living = session.living_queues()
    open_ones = [living[name] for name in request.queues if name in living and not living[name].settings.paused]
    if not open_ones:
        return Reserved([], session.now)
    more = await _catch_up(session, request.tenant_id, open_ones)
    allowance = await allow(session, open_ones, request.limit)
    lanes = _lanes(session, request, allowance)
    roomy = [lane for lane in lanes if lane.room > 0]
    tokens = [new_lease_token() for _ in range(request.limit)]
    claimed = await _claim(session, request, roomy, tokens)
    while more and roomy and not claimed.rows:
        # What is wanted may stand behind very many others that are overdue.
        more = await _catch_up(session, request.tenant_id, open_ones)
        claimed = await _claim(session, request, roomy, tokens)
    tasks = [ReservedTask(live_task_of(row), token) for row, token in zip(claimed.rows, tokens, strict=False)]
    await take(session, allowance, [task.task.queue for task in tasks])
    # What was last done to a task may be later than when this transaction began: its lease begins after that.
    server_time = max([session.now, *(lease.task.updated_at for lease in tasks)])
    return Reserved(tasks, server_time, None if tasks else await _next_available_at(session, lanes, allowance))


async def queues_with_work(session: Session) -> list[str]:
    """Those of the queues, of those that are not paused, in which something is ready or overdue."""
    open_ones = {queue.id: name for name, queue in session.living_queues().items() if not queue.settings.paused}
    if not open_ones:
        return []
    ready = await session.rows("queues_with_ready", queue_ids=list(open_ones))
    overdue = await session.rows("queues_with_overdue", queue_ids=list(open_ones), now=session.now)
    return [open_ones[queue_id] for queue_id in {row["queue_id"] for row in (*ready, *overdue)}]


def _check_lease_seconds(session: Session, request: ReserveRequest) -> None:
    if request.lease_seconds is None:
        return
    for name in request.queues:
        queue = session.living_queues().get(name)
        longest = (DEFAULT_QUEUE_SETTINGS if queue is None else queue.settings).max_lease_seconds
        if request.lease_seconds > longest:
            raise InvalidRequest(
                f"lease_seconds is over the max_lease_seconds of the queue {name!r}, {longest:g}",
                location=("body", "lease_seconds"),
            )


async def _catch_up(session: Session, tenant_id: str, queues: Sequence[Queue]) -> bool:
    """Moves what is overdue in the queues, a batch at most; whether there may be more."""
    ids = [queue.id for queue in queues]
    probe = await session.row("probe_overdue", queue_ids=ids, now=session.now)
    if probe is None or not probe["overdue"]:
        return False
    return await move_overdue(session, tenant_id, ids) >= OVERDUE_BATCH


def _lanes(session: Session, request: ReserveRequest, allowance: Allowance) -> list[Lane]:
    types: Sequence[str | None] = request.types or (None,)
    return [
        Lane(
            queue_id=queue.id,
            type=type_,
            place=place,
            room=allowance.rooms[queue.id],
            lease_until=session.now + timedelta(seconds=request.lease_seconds or queue.settings.lease_seconds),
        )
        for place, queue in enumerate(allowance.queues)
        for type_ in types
    ]


async def _claim(session: Session, request: ReserveRequest, lanes: list[Lane], tokens: list[str]) -> Claimed:
    claimed = Claimed([])
    for _ in range(MAX_ROUNDS if lanes else 0):
        claimed = await session.dialect.claim(session, request, lanes, tokens)
        if not claimed.raced:
            break
    return claimed


async def _next_available_at(session: Session, lanes: list[Lane], allowance: Allowance) -> datetime | None:
    if not lanes:
        return None
    row = await session.row("next_available", lanes=[asdict(lane) for lane in lanes])
    due = [] if row is None or row["next_at"] is None else [row["next_at"]]
    return min([*due, *await _allowed_again(session, allowance)], default=None)


async def _allowed_again(session: Session, allowance: Allowance) -> list[datetime]:
    """When the rates that hold ready tasks back let the next one go."""
    held_back = allowance.held_back_by_rate(session.now)
    if not held_back:
        return []
    rows = await session.rows("queues_with_ready", queue_ids=held_back)
    return [allowance.next_at(row["queue_id"], session.now) for row in rows]
