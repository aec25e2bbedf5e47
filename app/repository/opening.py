"""Queues that a transaction puts tasks into: one that nobody declared is made by its first task."""

from datetime import timedelta

from app.domain.queue import DEFAULT_QUEUE_SETTINGS, Queue, QueueSettings
from app.repository.queue_records import settings_record
from app.repository.session import Scope, Session


async def open_queues(session: Session, scope: Scope) -> dict[str, Queue]:
    """The queues of the scope, all of them there."""
    living = session.living_queues()
    missing = sorted(set(scope.queues) - living.keys())
    if not missing:
        return living
    for name in missing:
        if name in session.queues:
            await bury_queue(session, session.queues[name])
        await insert_queue(session, scope.tenant_id, name, DEFAULT_QUEUE_SETTINGS, declared=False)
    await session.open(scope, session.now)
    return session.living_queues()


async def insert_queue(session: Session, tenant_id: str, name: str, settings: QueueSettings, *, declared: bool) -> None:
    """A new life of a queue; if somebody else gives it one at the same moment, the transaction is run again."""
    ends_at = session.now + timedelta(seconds=settings.keep_alive_seconds) if settings.exclusive else None
    await session.run(
        "insert_queue",
        tenant_id=tenant_id,
        name=name,
        declared=declared,
        rate_left=full_bucket(settings),
        now=session.now,
        **settings_record(settings, ends_at),
    )


async def bury_queue(session: Session, queue: Queue) -> None:
    """The end of a queue: one row goes, and what waited in it is found by its grave."""
    await session.run("insert_grave", queue_id=queue.id, now=session.now)
    await session.run("delete_queue", queue_id=queue.id)


def full_bucket(settings: QueueSettings) -> float:
    return max(1.0, settings.rate_per_second or 0.0)
