"""Queues and topics: declared, looked at, changed, deleted; and messages published to topics."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import structs

from app.domain.commands import Page
from app.domain.errors import QueueExclusive, QueueNotExclusive, QueueNotFound, TopicNotFound
from app.domain.identifiers import new_task_id
from app.domain.queue import Queue, QueueSettings
from app.domain.task import Enqueued, NewTask
from app.domain.topology import NameKey, Topic
from app.repository.connection import Row
from app.repository.enqueueing import enqueue_many
from app.repository.opening import bury_queue, insert_queue, open_queues
from app.repository.protocol import ChangeSettings
from app.repository.queue_records import queue_of, settings_record
from app.repository.session import Scope, Session


def declared_queue(session: Session, name: str) -> Queue:
    """The queue that the transaction is about; raises `QueueNotFound` unless it is declared and there by now."""
    queue = session.living_queues().get(name)
    if queue is None or not queue.declared:
        raise QueueNotFound(name)
    return queue


async def _lock(session: Session, queue: Queue) -> Queue:
    """Of two changes at once the second builds on the first; raises `QueueNotFound` if it was deleted meanwhile."""
    row = await session.row("lock_queues", queue_ids=[queue.id])
    if row is None or not queue_of(row).is_alive(session.now):
        raise QueueNotFound(queue.name)
    return queue_of(row)


async def put_queue(session: Session, tenant_id: str, name: str, settings: QueueSettings) -> tuple[Queue, bool]:
    """Declares a queue or changes all of its settings; whether it is new."""
    await _hold_topic(session, tenant_id, settings.topic)
    queue = session.living_queues().get(name)
    if queue is None:
        if name in session.queues:
            await bury_queue(session, session.queues[name])
        await insert_queue(session, tenant_id, name, settings, declared=True)
    elif (await _lock(session, queue)).settings.exclusive:
        raise QueueExclusive(name)
    else:
        await _update(session, queue, settings)
    await session.open(Scope(tenant_id, (name,)), session.now)
    return declared_queue(session, name), queue is None or not queue.declared


async def patch_queue(session: Session, tenant_id: str, name: str, change: ChangeSettings) -> Queue:
    """Changes what is given of a declared queue's settings."""
    queue = await _lock(session, declared_queue(session, name))
    settings = change(queue.settings)
    await _hold_topic(session, tenant_id, settings.topic)
    await _update(session, queue, settings)
    await session.open(Scope(tenant_id, (name,)), session.now)
    return declared_queue(session, name)


async def set_paused(session: Session, tenant_id: str, name: str, *, paused: bool) -> Queue:
    """Pauses or resumes a queue, which declares it."""
    scope = Scope(tenant_id, (name,))
    queue = await _lock(session, (await open_queues(session, scope))[name])
    await _update(session, queue, dataclasses.replace(queue.settings, paused=paused))
    await session.open(scope, session.now)
    return declared_queue(session, name)


async def keep_alive(session: Session, name: str, seconds: float) -> datetime:
    queue = await _lock(session, declared_queue(session, name))
    if not queue.settings.exclusive:
        raise QueueNotExclusive(name)
    ends_at = session.now + timedelta(seconds=seconds)
    await _write_settings(session, queue, queue.settings, ends_at)
    return ends_at


async def delete_queue(session: Session, name: str) -> None:
    """One row goes; what waited in the queue goes behind it."""
    await bury_queue(session, declared_queue(session, name))


async def list_queues(
    session: Session, tenant_id: str, topic: str | None, limit: int, after: NameKey | None
) -> Page[Queue, NameKey]:
    rows = await session.rows(
        "list_queues",
        tenant_id=tenant_id,
        topic=topic,
        after_name=after.name if after else "",
        now=session.now,
        limit=limit + 1,
    )
    return Page([queue_of(row) for row in rows[:limit]], _next_name(rows, limit))


async def put_topic(session: Session, tenant_id: str, name: str) -> tuple[Topic, bool]:
    existing = await session.row("lock_topic", tenant_id=tenant_id, name=name)
    if existing is None:
        await session.run("insert_topic", tenant_id=tenant_id, name=name, now=session.now)
    return await get_topic(session, tenant_id, name), existing is None


async def get_topic(session: Session, tenant_id: str, name: str) -> Topic:
    row = await session.row("lock_topic", tenant_id=tenant_id, name=name)
    if row is None:
        raise TopicNotFound(name)
    return Topic(row["name"], row["created_at"])


async def list_topics(session: Session, tenant_id: str, limit: int, after: NameKey | None) -> Page[Topic, NameKey]:
    rows = await session.rows(
        "list_topics", tenant_id=tenant_id, after_name=after.name if after else "", limit=limit + 1
    )
    return Page([Topic(row["name"], row["created_at"]) for row in rows[:limit]], _next_name(rows, limit))


async def delete_topic(session: Session, tenant_id: str, name: str) -> None:
    """The topic goes with its queues, and what waited in them goes behind them."""
    if await session.row("lock_topic_to_delete", tenant_id=tenant_id, name=name) is None:
        raise TopicNotFound(name)
    for queue in await subscribers(session, tenant_id, name):
        await bury_queue(session, queue)
    await session.run("delete_topic", tenant_id=tenant_id, name=name)


async def subscribers(session: Session, tenant_id: str, topic: str) -> list[Queue]:
    rows = await session.rows("lock_subscribers", tenant_id=tenant_id, topic=topic, now=session.now)
    return [queue_of(row) for row in rows]


async def publish(session: Session, tenant_id: str, topic: str, message: NewTask) -> list[Enqueued]:
    """One task for every queue that is subscribed at this moment, and stays until the transaction ends."""
    await get_topic(session, tenant_id, topic)
    session.queues = {queue.name: queue for queue in await subscribers(session, tenant_id, topic)}
    scope = Scope(tenant_id, list(session.queues))
    tasks = [structs.replace(message, id=new_task_id(), queue=name) for name in scope.queues]
    return await enqueue_many(session, scope, tasks) if tasks else []


async def _hold_topic(session: Session, tenant_id: str, topic: str | None) -> None:
    """A queue subscribes only to a topic that is there, and that stays until the transaction ends."""
    if topic is not None:
        await get_topic(session, tenant_id, topic)


async def _update(session: Session, queue: Queue, settings: QueueSettings) -> None:
    ends_at = queue.keep_alive_until if settings.exclusive else None
    if settings.exclusive and ends_at is None:
        ends_at = session.now + timedelta(seconds=settings.keep_alive_seconds)
    await _write_settings(session, queue, settings, ends_at)


async def _write_settings(
    session: Session, queue: Queue, settings: QueueSettings, keep_alive_until: datetime | None
) -> None:
    record = settings_record(settings, keep_alive_until)
    await session.run("update_queue", queue_id=queue.id, declared=True, now=session.now, **record)


def _next_name(rows: Sequence[Row], limit: int) -> NameKey | None:
    return NameKey(rows[limit - 1]["name"]) if len(rows) > limit else None
