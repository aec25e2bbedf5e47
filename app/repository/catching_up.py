"""Moving what time has changed to where it is looked for, before somebody looks."""

from datetime import datetime

from app.repository.moving import OVERDUE_BATCH, move_overdue
from app.repository.session import Database, Scope, Session

# Lists may lag behind the clock by two seconds: enough batches for that, and then they are answered.
MAX_BATCHES = 20


async def catch_up(database: Database, tenant_id: str, queue: str | None, now: datetime | None) -> None:
    """Does so in one queue, or in all of the tenant's."""

    async def move(session: Session) -> int:
        if queue is None:
            ids = [row["id"] for row in await session.rows("list_queue_ids", tenant_id=tenant_id)]
        else:
            ids = [found.id for found in session.living_queues().values()]
        # Workers may still have had tasks of queues that are gone.
        gone = [row["queue_id"] for row in await session.rows("list_graves_of_tenant", tenant_id=tenant_id)]
        return await move_overdue(session, tenant_id, [*ids, *gone])

    scope = Scope(tenant_id, () if queue is None else (queue,))
    for _ in range(MAX_BATCHES):
        if await database.write(move, now, scope) < OVERDUE_BATCH:
            return
