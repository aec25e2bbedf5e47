"""Queues, topics and operations on a SQL database: each method is one transaction, the bulk ones several small ones."""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from app.domain.commands import Page, RequeueRequest
from app.domain.identifiers import new_task_id
from app.domain.queue import Queue, QueueSettings
from app.domain.task import NewTask
from app.domain.topology import Explanation, NameKey, Operation, Published, QueueStats, Topic
from app.repository import cleaning, counting, operations, reading, topology
from app.repository.catching_up import catch_up
from app.repository.lateness import count_if_late
from app.repository.protocol import ChangeSettings
from app.repository.session import Database, Scope, Session


class SqlTopologyRepository:
    """See `protocol.TopologyRepository`."""

    def __init__(self, database: Database, patient: Database) -> None:
        self._database = database
        # For what may take long and is done seldom.
        self._patient = patient

    async def put_queue(
        self, tenant_id: str, name: str, settings: QueueSettings, now: datetime | None = None
    ) -> tuple[Queue, bool]:
        return await self._database.write(
            lambda session: topology.put_queue(session, tenant_id, name, settings), now, Scope(tenant_id, (name,))
        )

    async def patch_queue(
        self, tenant_id: str, name: str, change: ChangeSettings, now: datetime | None = None
    ) -> Queue:
        return await self._database.write(
            lambda session: topology.patch_queue(session, tenant_id, name, change), now, Scope(tenant_id, (name,))
        )

    async def get_queue(self, tenant_id: str, name: str, now: datetime | None = None) -> Queue:
        async def get(session: Session) -> Queue:
            return topology.declared_queue(session, name)

        return await self._database.read(get, now, Scope(tenant_id, (name,)))

    async def list_queues(
        self, tenant_id: str, topic: str | None, limit: int, after: NameKey | None, now: datetime | None = None
    ) -> Page[Queue, NameKey]:
        return await self._database.read(
            lambda session: topology.list_queues(session, tenant_id, topic, limit, after), now
        )

    async def delete_queue(self, tenant_id: str, name: str, now: datetime | None = None) -> None:
        await self._database.write(lambda session: topology.delete_queue(session, name), now, Scope(tenant_id, (name,)))

    async def set_paused(self, tenant_id: str, name: str, *, paused: bool, now: datetime | None = None) -> Queue:
        return await self._database.write(
            lambda session: topology.set_paused(session, tenant_id, name, paused=paused),
            now,
            Scope(tenant_id, (name,)),
        )

    async def keep_alive(self, tenant_id: str, name: str, seconds: float, now: datetime | None = None) -> datetime:
        return await self._database.write(
            lambda session: topology.keep_alive(session, name, seconds), now, Scope(tenant_id, (name,))
        )

    async def purge_queue(self, tenant_id: str, name: str, now: datetime | None = None) -> int:
        await catch_up(self._database, tenant_id, name, now)
        last = await self._database.read(cleaning.last_seq, now)

        async def delete(session: Session) -> int:
            queue = session.living_queues().get(name)
            return 0 if queue is None else await cleaning.delete_waiting(session, queue.id, last)

        return await self._until_nothing_is_left(delete, now, Scope(tenant_id, (name,)))

    async def cleanup_queue(
        self, tenant_id: str, name: str, older_than_seconds: float, now: datetime | None = None
    ) -> int:
        await catch_up(self._database, tenant_id, name, now)
        before = await self._moment(older_than_seconds, now)
        return await self._until_nothing_is_left(
            lambda session: cleaning.delete_history_of_queue(session, tenant_id, name, before), now
        )

    async def cleanup_topic(
        self, tenant_id: str, name: str, older_than_seconds: float, now: datetime | None = None
    ) -> int:
        async def queues_of_topic(session: Session) -> list[str]:
            await topology.get_topic(session, tenant_id, name)
            return [queue.name for queue in await topology.subscribers(session, tenant_id, name)]

        queues = await self._database.read(queues_of_topic, now)
        return sum([await self.cleanup_queue(tenant_id, queue, older_than_seconds, now) for queue in queues])

    async def queue_stats(
        self, tenant_id: str, name: str, bound: int | None, now: datetime | None = None
    ) -> QueueStats:
        await catch_up(self._database, tenant_id, name, now)
        database = self._patient if bound is None else self._database
        return await database.read(
            lambda session: counting.queue_stats(session, tenant_id, name, bound), now, Scope(tenant_id, (name,))
        )

    async def explain_task(self, tenant_id: str, task_id: str, bound: int, now: datetime | None = None) -> Explanation:
        async def explain(session: Session) -> Explanation:
            await reading.move_task_if_overdue(session, tenant_id, task_id)
            return await counting.explain_task(session, tenant_id, task_id, bound)

        return await self._database.write(explain, now)

    async def put_topic(self, tenant_id: str, name: str, now: datetime | None = None) -> tuple[Topic, bool]:
        return await self._database.write(lambda session: topology.put_topic(session, tenant_id, name), now)

    async def get_topic(self, tenant_id: str, name: str, now: datetime | None = None) -> Topic:
        return await self._database.read(lambda session: topology.get_topic(session, tenant_id, name), now)

    async def list_topics(
        self, tenant_id: str, limit: int, after: NameKey | None, now: datetime | None = None
    ) -> Page[Topic, NameKey]:
        return await self._database.read(lambda session: topology.list_topics(session, tenant_id, limit, after), now)

    async def delete_topic(self, tenant_id: str, name: str, now: datetime | None = None) -> None:
        await self._database.write(lambda session: topology.delete_topic(session, tenant_id, name), now)

    async def publish(self, tenant_id: str, topic: str, message: NewTask, now: datetime | None = None) -> Published:
        began_at = time.monotonic()
        deliveries = await self._database.write(
            lambda session: topology.publish(session, tenant_id, topic, message), now
        )
        if now is None:
            scope = Scope(tenant_id, {delivery.queue for delivery in deliveries})
            await count_if_late(self._database, scope, began_at)
        return Published(message.publish_id or "", deliveries)

    async def start_operation(
        self, tenant_id: str, request: RequeueRequest, rate_per_second: float, now: datetime | None = None
    ) -> Operation:
        await catch_up(self._database, tenant_id, request.filter.queue, now)
        operation_id = new_task_id()
        return await self._database.write(
            lambda session: operations.start_operation(session, tenant_id, operation_id, request, rate_per_second), now
        )

    async def get_operation(self, tenant_id: str, operation_id: str, now: datetime | None = None) -> Operation:
        return await self._database.read(
            lambda session: operations.get_operation(session, tenant_id, operation_id), now
        )

    async def stop_operation(self, tenant_id: str, operation_id: str, now: datetime | None = None) -> Operation:
        return await self._database.write(
            lambda session: operations.stop_operation(session, tenant_id, operation_id), now
        )

    async def _moment(self, seconds_ago: float, now: datetime | None) -> datetime:
        async def look(session: Session) -> datetime:
            return session.now - timedelta(seconds=seconds_ago)

        return await self._database.read(look, now)

    async def _until_nothing_is_left(
        self, delete: Callable[[Session], Awaitable[int]], now: datetime | None, scope: Scope | None = None
    ) -> int:
        total = 0
        while deleted := await self._database.write(delete, now, scope or Scope()):
            total += deleted
        return total
