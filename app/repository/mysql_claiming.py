"""Leasing rows that are locked: what becomes of them is known here, so only what may be long is read once more."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from app.domain.commands import ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.domain.task import Status
from app.repository.asyncmy_connection import Arguments
from app.repository.claiming import fitting
from app.repository.connection import Row
from app.repository.dialect import Grant, Lane
from app.repository.session import Session

MICROSECOND = timedelta(microseconds=1)


async def lease_locked(
    session: Session, wish: ReserveRequest, lanes: Sequence[Lane], grants: Sequence[Grant], locked: Iterable[Row]
) -> list[Row]:
    """Leases as many as fit a reply, and gives them in the order given."""
    chosen = list(fitting(locked, wish.max_bytes))
    if not chosen:
        return []
    leases = {lane.queue_id: lane.lease_until - session.now for lane in lanes}
    await _write_leases(session, chosen, grants, leases)
    contents = await session.rows("read_contents", seqs=[row["seq"] for row in chosen])
    by_seq = {row["seq"]: row for row in contents}
    return [
        {**row, **by_seq[row["seq"]], **_lease(row, grant, leases[row["queue_id"]], session.now)}
        for row, grant in zip(chosen, grants, strict=False)
    ]


async def _write_leases(
    session: Session, rows: Sequence[Row], grants: Sequence[Grant], leases: Mapping[int, timedelta]
) -> None:
    seqs = [row["seq"] for row in rows]
    granted = grants[: len(rows)]
    await session.run(
        "lease_many",
        seqs=seqs,
        keys=Arguments(seqs),
        worker_ids=Arguments(grant.worker_id for grant in granted),
        token_hashes=Arguments(lease_token_hash(grant.token) for grant in granted),
        queue_ids=Arguments(leases),
        leases=Arguments(lease // MICROSECOND for lease in leases.values()),
        now=session.now,
    )


def _lease(row: Row, grant: Grant, lease: timedelta, now: datetime) -> Row:
    """What `lease_many` makes of a row."""
    # What was last done to a task may be later than when this transaction began: its lease begins after that.
    at = max(now, row["updated_at"])
    return {
        "status": Status.LEASED,
        "attempts": row["attempts"] + 1,
        "lease_owner": grant.worker_id,
        "lease_until": at + lease,
        "first_leased_at": row["first_leased_at"] or at,
        "updated_at": at,
    }
