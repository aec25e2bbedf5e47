"""Leasing in two steps, for the dialects whose UPDATE cannot both choose and return rows in order."""

from collections.abc import Iterable, Sequence

from app.domain.commands import ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.repository.connection import Row
from app.repository.dialect import Grant, Lane
from app.repository.session import Session


def pick_parameters(session: Session, wish: ReserveRequest) -> dict[str, object]:
    return {"now": session.now, "exclude_ids": list(wish.exclude_ids)}


async def lease_picked(
    session: Session,
    wish: ReserveRequest,
    lanes: Sequence[Lane],
    grants: Sequence[Grant],
    picked: Iterable[Row],
) -> list[Row]:
    """Leases rows that nobody else can take, as many as fit a reply, and reads them in the order given."""
    chosen = list(fitting(picked, wish.max_bytes))
    if not chosen:
        return []
    ends = {lane.queue_id: lane.lease_until for lane in lanes}
    await session.run(
        "lease_many",
        leases=[
            {
                "seq": row["seq"],
                "token_hash": lease_token_hash(grant.token),
                "worker_id": grant.worker_id,
                "lease_until": ends[row["queue_id"]],
            }
            for row, grant in zip(chosen, grants, strict=False)
        ],
        now=session.now,
    )
    rows = {row["seq"]: row for row in await session.rows("read_leased", seqs=[row["seq"] for row in chosen])}
    return [rows[row["seq"]] for row in chosen]


def fitting(picked: Iterable[Row], max_bytes: int) -> Iterable[Row]:
    """The first always fits: a reply is never empty because a task is large."""
    total = 0
    for row in picked:
        if total >= max_bytes:
            return
        total += row["size"]
        yield row
