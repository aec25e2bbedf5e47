"""Moving what time has changed to where it is looked for, before somebody looks."""

from datetime import datetime

from app.repository.graves import later, lease_ends
from app.repository.moving import OVERDUE_BATCH, move_overdue
from app.repository.session import Database, Scope, Session

# Lists may lag behind the clock by two seconds: enough batches for that, and then they are answered.
MAX_BATCHES = 20
GRAVES_AT_ONCE = 100


async def catch_up(database: Database, tenant_id: str, queue: str | None, now: datetime | None) -> None:
    """Does so in one queue, or in all of the tenant's."""

    async def move(session: Session) -> bool:
        if queue is None:
            ids = [row["id"] for row in await session.rows("list_queue_ids", tenant_id=tenant_id)]
        else:
            ids = [found.id for found in session.living_queues().values()]
        # Workers may still have had tasks of queues that are gone.
        graves = await session.rows(
            "lock_graves_to_look_at", tenant_id=tenant_id, now=session.now, limit=GRAVES_AT_ONCE
        )
        moved = await move_overdue(session, tenant_id, [*ids, *(grave["queue_id"] for grave in graves)])
        if moved >= OVERDUE_BATCH:
            return True
        if graves:
            ends = await lease_ends(session, graves)
            await session.run_each("look_at_grave_later", later(graves, ends, session.now))
        return len(graves) == GRAVES_AT_ONCE

    scope = Scope(tenant_id, () if queue is None else (queue,))
    for _ in range(MAX_BATCHES):
        if not await database.write(move, now, scope):
            return
