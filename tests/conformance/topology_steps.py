"""The steps of tests about queues and topics: a tenant's calls, at T0 unless said otherwise."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict, Unpack

from app.domain.backoff import Backoff
from app.domain.commands import DeadLetterFilter, Page, RequeueRequest
from app.domain.queue import Queue, QueueSettings
from app.domain.topology import Explanation, NameKey, Operation, Published, QueueStats, Topic
from app.repository.dialect import Dialect
from app.repository.factory import Repositories, open_repositories
from app.repository.protocol import MaintenanceRepository, TopologyRepository
from tests.conformance.steps import ANY_LETTER, QUEUE, T0, TIMEOUT_SECONDS, RequeueFields, Store, TaskFields, new_task

BOUND = 1000


async def fill(store: Store, count: int, queue: str = QUEUE, type: str = "") -> None:
    """That many new tasks in a queue."""
    await store.enqueue_many(*(new_task(queue=queue, type=type) for _ in range(count)))


async def until_done(duty: Callable[[datetime], Awaitable[int]], now: datetime) -> list[int]:
    """Runs a janitor's duty as long as there is something to do; how much each batch did."""
    batches: list[int] = []
    while done := await duty(now):
        batches.append(done)
        assert len(batches) < 100, "it does not come to an end"
    return batches


async def sweep(maintenance: MaintenanceRepository, now: datetime) -> None:
    """Everything that a janitor clears away, until there is nothing left to do."""
    for duty in (
        maintenance.move_overdue,
        maintenance.bury_ended_queues,
        maintenance.clear_graves,
        maintenance.drop_old_tombstones,
        maintenance.drop_old_history,
        maintenance.drop_old_dead_letters,
    ):
        await until_done(duty, now)
    await maintenance.drop_old_operations(now)


class Settings(TypedDict, total=False):
    """What a test may say of a queue."""

    topic: str | None
    exclusive: bool
    keep_alive_seconds: float
    max_attempts: int
    lease_seconds: float
    max_lease_seconds: float
    backoff: Backoff
    rate_per_second: float | None
    concurrency_limit: int | None
    paused: bool
    history_days: float | None
    dlq_days: float | None


@dataclass(frozen=True)
class Topology:
    """The queues and topics of one tenant."""

    repository: TopologyRepository
    tenant: str

    async def put(self, name: str = QUEUE, now: datetime = T0, **settings: Unpack[Settings]) -> Queue:
        """Declares a queue or sets all of its settings."""
        queue, _ = await self.repository.put_queue(self.tenant, name, QueueSettings(**settings), now)
        return queue

    async def put_is_new(self, name: str = QUEUE, now: datetime = T0, **settings: Unpack[Settings]) -> bool:
        _, is_new = await self.repository.put_queue(self.tenant, name, QueueSettings(**settings), now)
        return is_new

    async def patch(self, name: str = QUEUE, now: datetime = T0, **settings: Unpack[Settings]) -> Queue:
        return await self.repository.patch_queue(self.tenant, name, lambda current: replace(current, **settings), now)

    async def get(self, name: str = QUEUE, now: datetime = T0) -> Queue:
        return await self.repository.get_queue(self.tenant, name, now)

    async def list(
        self, topic: str | None = None, now: datetime = T0, *, limit: int = 100, after: NameKey | None = None
    ) -> Page[Queue, NameKey]:
        return await self.repository.list_queues(self.tenant, topic, limit, after, now)

    async def names(self, topic: str | None = None, now: datetime = T0) -> Sequence[str]:
        return [queue.name for queue in (await self.list(topic, now)).items]

    async def delete(self, name: str = QUEUE, now: datetime = T0) -> None:
        await self.repository.delete_queue(self.tenant, name, now)

    async def pause(self, name: str = QUEUE, now: datetime = T0) -> Queue:
        return await self.repository.set_paused(self.tenant, name, paused=True, now=now)

    async def resume(self, name: str = QUEUE, now: datetime = T0) -> Queue:
        return await self.repository.set_paused(self.tenant, name, paused=False, now=now)

    async def keep_alive(self, seconds: float, now: datetime = T0, name: str = QUEUE) -> datetime:
        return await self.repository.keep_alive(self.tenant, name, seconds, now)

    async def purge(self, name: str = QUEUE, now: datetime = T0) -> int:
        return await self.repository.purge_queue(self.tenant, name, now)

    async def cleanup(self, older_than_seconds: float = 0.0, now: datetime = T0, name: str = QUEUE) -> int:
        return await self.repository.cleanup_queue(self.tenant, name, older_than_seconds, now)

    async def cleanup_topic(self, name: str, older_than_seconds: float = 0.0, now: datetime = T0) -> int:
        return await self.repository.cleanup_topic(self.tenant, name, older_than_seconds, now)

    async def stats(self, name: str = QUEUE, now: datetime = T0, bound: int | None = BOUND) -> QueueStats:
        return await self.repository.queue_stats(self.tenant, name, bound, now)

    async def counts(self, name: str = QUEUE, now: datetime = T0) -> dict[str, int]:
        """The states of which there are any tasks."""
        return {str(status): count for status, count in (await self.stats(name, now)).counts.items() if count}

    async def explain(self, task_id: str, now: datetime = T0, bound: int = BOUND) -> Explanation:
        return await self.repository.explain_task(self.tenant, task_id, bound, now)

    async def put_topic(self, name: str, now: datetime = T0) -> tuple[Topic, bool]:
        return await self.repository.put_topic(self.tenant, name, now)

    async def get_topic(self, name: str, now: datetime = T0) -> Topic:
        return await self.repository.get_topic(self.tenant, name, now)

    async def list_topics(
        self, *, limit: int = 100, after: NameKey | None = None, now: datetime = T0
    ) -> Page[Topic, NameKey]:
        return await self.repository.list_topics(self.tenant, limit, after, now)

    async def delete_topic(self, name: str, now: datetime = T0) -> None:
        await self.repository.delete_topic(self.tenant, name, now)

    async def subscribe(self, topic: str, *queues: str, now: datetime = T0) -> None:
        """A topic, with these queues on it."""
        await self.put_topic(topic, now)
        for queue in queues:
            await self.put(queue, now, topic=topic)

    async def publish(self, name: str, now: datetime = T0, **fields: Unpack[TaskFields]) -> Published:
        """Publishes `message-1`, unless it is given another id, to a topic."""
        said: TaskFields = {"publish_id": "message-1", **fields, "queue": name, "topic": name}
        return await self.repository.publish(self.tenant, name, new_task(**said), now)

    async def start_operation(
        self,
        rate_per_second: float,
        letters: DeadLetterFilter = ANY_LETTER,
        now: datetime = T0,
        **fields: Unpack[RequeueFields],
    ) -> Operation:
        request = RequeueRequest(letters, **fields)
        return await self.repository.start_operation(self.tenant, request, rate_per_second, now)

    async def operation(self, operation_id: str, now: datetime = T0) -> Operation:
        return await self.repository.get_operation(self.tenant, operation_id, now)

    async def stop_operation(self, operation_id: str, now: datetime = T0) -> Operation:
        return await self.repository.stop_operation(self.tenant, operation_id, now)


class Emptied:
    """A database of the test's own, and the repositories of one process on it."""

    def __init__(self, dialect: Dialect, tenant: str) -> None:
        self.dialect = dialect
        self.tenant = tenant
        repositories = self.open()
        self.store = Store(repositories.tasks, tenant)
        self.topology = Topology(repositories.topology, tenant)
        self.maintenance: MaintenanceRepository = repositories.maintenance

    def open(self) -> Repositories:
        """The repositories as another process has them."""
        return open_repositories(self.dialect, timeout_seconds=TIMEOUT_SECONDS)

    async def rows(self, table: str) -> int:
        """How many rows a table has."""
        async with self.dialect.connect(write=False) as connection:
            result = await connection.exec_driver_sql(f"SELECT count(*) FROM {table}")
            return int(result.scalar_one())
