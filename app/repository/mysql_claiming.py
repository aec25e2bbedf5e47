"""Leasing rows that are locked: what becomes of them is known here, so only what is long is read once more."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

from app.domain.commands import ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.domain.task import Status
from app.repository.asyncmy_connection import Arguments
from app.repository.claiming import fitting
from app.repository.connection import Row
from app.repository.dialect import Grant, Lane
from app.repository.session import Session

MICROSECOND = timedelta(microseconds=1)
# A task of up to so many bytes is read when it is picked, even if then there is no room for it in the reply.
SHORT = 8 * 1024


async def lease_locked(
    session: Session, wish: ReserveRequest, lanes: Sequence[Lane], grants: Sequence[Grant], locked: Iterable[Row]
) -> list[Row]:
    """Leases as many as fit a reply, and gives them in the order given."""
    chosen = list(fitting(locked, wish.max_bytes))
    if not chosen:
        return []
    leases = {lane.queue_id: lane.lease_until - session.now for lane in lanes}
    await _write_leases(session, list(zip(chosen, grants, strict=False)), leases)
    long = await _read_long(session, chosen)
    return [
        {**row, **long.get(row["seq"], {}), **_lease(row, grant, leases[row["queue_id"]], session.now)}
        for row, grant in zip(chosen, grants, strict=False)
    ]


async def _write_leases(
    session: Session, granted: Sequence[tuple[Row, Grant]], leases: Mapping[int, timedelta]
) -> None:
    in_order = sorted(granted, key=lambda each: cast(int, each[0]["seq"]))
    seqs = [row["seq"] for row, _ in in_order]
    await session.run(
        "lease_many",
        seqs=seqs,
        keys=Arguments(seqs),
        worker_ids=Arguments(grant.worker_id for _, grant in in_order),
        token_hashes="".join(lease_token_hash(grant.token) for _, grant in in_order),
        queue_ids=Arguments(leases),
        leases=Arguments(lease // MICROSECOND for lease in leases.values()),
        now=session.now,
    )


async def _read_long(session: Session, rows: Sequence[Row]) -> dict[int, Row]:
    """The contents of those that were too long to be read with the others."""
    seqs = [row["seq"] for row in rows if row["size"] > SHORT]
    contents = await session.rows("read_contents", seqs=seqs) if seqs else ()
    return {row["seq"]: row for row in contents}


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
