"""Leasing in two steps, for the dialects whose UPDATE cannot both choose and return rows in order."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from app.domain.commands import ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.repository.dialect import Row
from app.repository.session import Session


def pick_parameters(session: Session, request: ReserveRequest, limit: int) -> dict[str, object]:
    return {
        "tenant_id": request.tenant_id,
        "now": session.now,
        "exclude_ids": list(request.exclude_ids),
        "limit": limit,
    }


async def lease_picked(
    session: Session, request: ReserveRequest, tokens: Sequence[str], picked: Iterable[Row]
) -> list[Row]:
    """Leases rows that nobody else can take, as many as fit a reply, and reads them in the order given."""
    seqs = [row["seq"] for row in _fitting(picked, request.max_bytes)]
    if not seqs:
        return []
    await session.run(
        "lease_many",
        leases=[{"seq": seq, "token_hash": lease_token_hash(token)} for seq, token in zip(seqs, tokens, strict=False)],
        worker_id=request.worker_id or "",
        lease_until=session.now + timedelta(seconds=request.lease_seconds),
        now=session.now,
    )
    rows = {row["seq"]: row for row in await session.rows("read_leased", seqs=seqs)}
    return [rows[seq] for seq in seqs]


def _fitting(picked: Iterable[Row], max_bytes: int) -> Iterable[Row]:
    """The first always fits: a reply is never empty because a task is large."""
    total = 0
    for row in picked:
        if total >= max_bytes:
            return
        total += row["size"]
        yield row
