"""Requeues that go on in the background: their progress is in the database, so any replica carries them on."""

from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import msgspec

from app.domain.commands import DeadLetterFilter, RequeueRequest
from app.domain.errors import OperationNotFound
from app.domain.queue import seconds_at_rate
from app.domain.topology import Advanced, Operation, OperationStatus, Resting
from app.repository.connection import Row
from app.repository.dead_letters import Span, Taken, count_dead_letters, filter_parameters, requeue_some
from app.repository.session import Session

MOST_AT_ONCE = 500


async def start_operation(
    session: Session, tenant_id: str, operation_id: str, request: RequeueRequest, rate_per_second: float
) -> Operation:
    """Notes what is to be done; the dead letters that are there now are what it is about."""
    count = await count_dead_letters(session, tenant_id, request.filter)
    await session.run(
        "insert_operation",
        tenant_id=tenant_id,
        id=operation_id,
        request=msgspec.json.encode(asdict(request)).decode(),
        rate_per_second=rate_per_second,
        last_id=count.last_id,
        now=session.now,
    )
    return await get_operation(session, tenant_id, operation_id)


async def get_operation(session: Session, tenant_id: str, operation_id: str) -> Operation:
    row = await session.row("get_operation", tenant_id=tenant_id, id=operation_id)
    if row is not None:
        letters = filter_parameters(_request_of(row).filter)
        row = await session.row("look_at_operation", tenant_id=tenant_id, operation_id=operation_id, **letters)
    if row is None:
        raise OperationNotFound(operation_id)
    return _operation_of(row)


async def stop_operation(session: Session, tenant_id: str, operation_id: str) -> Operation:
    """Stops it where it is; one that has ended stays as it ended."""
    row = await session.row("lock_operation", tenant_id=tenant_id, id=operation_id)
    if row is not None and row["status"] == OperationStatus.RUNNING:
        await _end(session, row, OperationStatus.STOPPED)
    return await get_operation(session, tenant_id, operation_id)


async def advance_operation(session: Session) -> Advanced | Resting:
    """Carries on with the operation that is next, if its time has come.

    What goes back and how far it got are written in one transaction: whoever dies in between has done nothing.
    """
    row = await session.row("lock_next_operation")
    if row is None or row["next_at"] > session.now:
        return Resting(None if row is None else (row["next_at"] - session.now).total_seconds())
    request = _request_of(row)
    room = MOST_AT_ONCE if request.limit is None else min(MOST_AT_ONCE, request.limit - row["requeued"])
    batch = min(room, max(1, int(row["rate_per_second"])))
    span = Span(row["after_id"], row["last_id"])
    looked = await requeue_some(session, row["tenant_id"], request, span, batch, taken=Taken())
    requeued = row["requeued"] + len(looked.queues)
    await session.run(
        "advance_operation",
        tenant_id=row["tenant_id"],
        id=row["id"],
        requeued=requeued,
        skipped=row["skipped"] + looked.skipped,
        after_id=row["after_id"] if looked.after_id is None else looked.after_id,
        next_at=session.now + timedelta(seconds=seconds_at_rate(len(looked.queues), row["rate_per_second"])),
        now=session.now,
    )
    if looked.after_id is None or requeued == request.limit:
        await _end(session, row, OperationStatus.DONE)
    return Advanced(row["tenant_id"], Counter(looked.queues))


async def _end(session: Session, row: Row, status: OperationStatus) -> None:
    await session.run("end_operation", tenant_id=row["tenant_id"], id=row["id"], status=status, now=session.now)


def _operation_of(row: Row) -> Operation:
    return Operation(
        id=row["id"],
        status=OperationStatus(row["status"]),
        rate_per_second=row["rate_per_second"],
        requeued=row["requeued"],
        skipped=row["skipped"],
        remaining=row["remaining"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        finished_at=row["finished_at"],
    )


def _request_of(row: Row) -> RequeueRequest:
    given: dict[str, Any] = msgspec.json.decode(row["request"])
    letters = given.pop("filter")
    for name in ("before", "after"):
        if letters[name] is not None:
            letters[name] = datetime.fromisoformat(letters[name])
    return RequeueRequest(filter=DeadLetterFilter(**letters), **given)
