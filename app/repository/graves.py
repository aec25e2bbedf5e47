"""When to look again at what queues that are gone have left."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from app.repository.connection import Row
from app.repository.session import Session

SOONEST = timedelta(seconds=1)


async def lease_ends(session: Session, graves: Sequence[Row]) -> Mapping[int, datetime]:
    """When the first lease ends, by queue, in those where any runs."""
    rows = await session.rows("next_lease_ends", queue_ids=[grave["queue_id"] for grave in graves])
    return {row["queue_id"]: row["lease_until"] for row in rows}


def later(graves: Sequence[Row], ends: Mapping[int, datetime], now: datetime) -> list[Row]:
    """When each grave is to be looked at next: when a lease ends; without one, the later the older it is.

    What was accepted or leased while its queue was being deleted may still come, though ever less likely.
    """
    return [
        {
            "queue_id": grave["queue_id"],
            "has_leases": grave["queue_id"] in ends,
            "at": ends.get(grave["queue_id"]) or now + max(SOONEST, now - grave["deleted_at"]),
        }
        for grave in graves
    ]
