"""MySQL: plain acks, without looking at more of the tasks than the answer tells."""

from collections.abc import Sequence
from datetime import datetime

from app.domain.commands import AckItem, Reserved, ReserveRequest, Settled
from app.domain.queue import QueueSettings
from app.domain.task import Enqueued, NewTask, Status
from app.repository.connection import Row
from app.repository.session import Database, Session


class MySQLShortcuts:
    """See `Shortcuts`. Enqueue and reserve have none here: of what they read nearly all is needed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enqueue_batches(
        self, tenant_id: str, batches: Sequence[Sequence[NewTask]], now: datetime | None
    ) -> list[list[Enqueued]] | None:
        return None

    async def reserve_many(self, requests: Sequence[ReserveRequest], now: datetime | None) -> list[Reserved | None]:
        return [None for _ in requests]

    async def ack_many(self, tenant_id: str, items: Sequence[AckItem], now: datetime | None) -> list[Settled | None]:
        """Acks without a result what is held under its token, unless its dedupe key outlasts it."""
        hashes = {item.id: item.token_hash for item in items}
        # Where a task is named twice, the one after the other counts.
        if len(hashes) < len(items) or any(item.result is not None for item in items):
            return [None for _ in items]

        async def ack(session: Session) -> list[Row]:
            rows = await session.rows("lock_held", tenant_id=tenant_id, ids=sorted(hashes), now=session.now)
            held = [row for row in rows if row["lease_token_hash"] == hashes[row["id"]]]
            await _finish(session, held)
            return held

        acked = {row["id"]: row for row in await self._database.write(ack, now)}
        return [_settled(acked.get(item.id)) for item in items]


async def _finish(session: Session, held: Sequence[Row]) -> None:
    """The move of an ack, for tasks about which there is nothing to decide."""
    by_days: dict[float | None, list[int]] = {}
    for row in held:
        by_days.setdefault(row["history_days"], []).append(row["seq"])
    for days, seqs in by_days.items():
        until = QueueSettings(history_days=days).keep_history_until(session.now)
        await session.log_acked(seqs)
        await session.run("archive_acked", at=session.now, keep_until=until, seqs=seqs)
        await session.run("delete_many", seqs=seqs)


def _settled(row: Row | None) -> Settled | None:
    return None if row is None else Settled(row["id"], row["queue"], Status.DONE)
