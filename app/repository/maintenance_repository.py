"""What a janitor asks of a SQL database: small batches, which any number of replicas may run at once."""

from datetime import datetime

from app.domain.topology import Advanced, Resting
from app.repository import cleaning, operations
from app.repository.moving import OVERDUE_BATCH, move_overdue
from app.repository.session import Database

QUEUES_AT_ONCE = 500


class SqlMaintenanceRepository:
    """See `protocol.MaintenanceRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._after_id = 0

    async def move_overdue(self, now: datetime | None = None) -> int:
        """Moves what time has changed in the next few of all queues: lost leases, due and expired tasks."""
        after_id = self._after_id
        overdue, last_id = await self._database.read(
            lambda session: cleaning.overdue_queues(session, after_id, QUEUES_AT_ONCE), now
        )
        moved = [await self._move(tenant_id, queue_ids, now) for tenant_id, queue_ids in overdue.items()]
        # Where a batch was full there is more to do, before the next few.
        if all(count < OVERDUE_BATCH for count in moved):
            self._after_id = last_id
        return sum(moved)

    async def bury_ended_queues(self, now: datetime | None = None) -> int:
        return await self._database.write(cleaning.bury_ended_queues, now)

    async def clear_graves(self, now: datetime | None = None) -> int:
        return await self._database.write(cleaning.clear_graves, now)

    async def drop_old_tombstones(self, now: datetime | None = None) -> int:
        return await self._database.write(cleaning.drop_old_tombstones, now)

    async def drop_old_history(self, now: datetime | None = None) -> int:
        return await self._database.write(cleaning.drop_old_history, now)

    async def drop_old_dead_letters(self, now: datetime | None = None) -> int:
        return await self._database.write(cleaning.drop_old_dead_letters, now)

    async def drop_old_operations(self, now: datetime | None = None) -> int:
        return await self._database.write(cleaning.drop_old_operations, now)

    async def advance_operation(self, now: datetime | None = None) -> Advanced | Resting:
        """Carries on with the operation that is next, if its time has come."""
        return await self._database.write(operations.advance_operation, now)

    async def _move(self, tenant_id: str, queue_ids: list[int], now: datetime | None) -> int:
        return await self._database.write(lambda session: move_overdue(session, tenant_id, queue_ids), now)
