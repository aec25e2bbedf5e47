"""Leasing tasks to workers."""

from datetime import datetime

from app.domain.commands import Reserved, ReserveRequest
from app.domain.lease_token import new_lease_token
from app.domain.task import ReservedTask
from app.repository.dialect import Claimed, lanes_of
from app.repository.moving import OVERDUE_BATCH, move_overdue
from app.repository.records import live_task_of
from app.repository.session import Session

MAX_ROUNDS = 5


async def reserve_many(session: Session, request: ReserveRequest) -> Reserved:
    """Leases what is first in the queues by now, whether or not anybody has moved there what became due."""
    tokens = [new_lease_token() for _ in range(request.limit)]
    more = True
    claimed = Claimed([])
    while more and not claimed.rows:
        # What is wanted may stand behind very many others that are overdue.
        more = await _catch_up(session, request)
        claimed = await _claim(session, request, tokens)
    tasks = [ReservedTask(live_task_of(row), token) for row, token in zip(claimed.rows, tokens, strict=False)]
    upcoming = None if tasks else await _next_available_at(session, request)
    return Reserved(tasks, session.now, upcoming)


async def _catch_up(session: Session, request: ReserveRequest) -> bool:
    """Moves what is overdue in the queues, a batch at most; whether there may be more."""
    probe = await session.row(
        "probe_overdue", tenant_id=request.tenant_id, queues=list(request.queues), now=session.now
    )
    if probe is None or not probe["overdue"]:
        return False
    return await move_overdue(session, request.tenant_id, request.queues) >= OVERDUE_BATCH


async def _claim(session: Session, request: ReserveRequest, tokens: list[str]) -> Claimed:
    claimed = Claimed([])
    for _ in range(MAX_ROUNDS):
        claimed = await session.dialect.claim(session, request, tokens)
        if not claimed.raced:
            break
    return claimed


async def _next_available_at(session: Session, request: ReserveRequest) -> datetime | None:
    row = await session.row("next_available", tenant_id=request.tenant_id, lanes=lanes_of(request))
    return None if row is None else row["next_at"]
