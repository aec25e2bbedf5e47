"""Tasks: enqueue, reserve, settle, look, change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from app.domain.commands import (
    AckItem,
    AttemptKey,
    Extended,
    ExtendItem,
    ExtendOutcome,
    FailItem,
    FinishedKey,
    LiveKey,
    NackItem,
    Page,
    ReleaseItem,
    Reserved,
    ReserveRequest,
    Settled,
    SettleOutcome,
    TaskEdit,
    TaskFilter,
)
from app.domain.errors import InvalidRequest, LeaseMQError
from app.domain.lease_token import lease_token_hash
from app.domain.queue import DEFAULT_QUEUE_SETTINGS
from app.domain.task import Attempt, Enqueued, NewTask, Task
from app.metrics import Metrics
from app.repository.protocol import Repository
from app.service.turns import Turns

CallerIsGone = Callable[[], Awaitable[bool]]


class TaskService:
    """Everything about tasks that are not dead letters."""

    def __init__(self, repository: Repository, metrics: Metrics, *, wait_poll_seconds: float) -> None:
        self._repository = repository
        self._metrics = metrics
        self._wait_poll_seconds = wait_poll_seconds
        self._turns = Turns()

    async def enqueue_many(self, tenant_id: str, tasks: Sequence[NewTask]) -> list[Enqueued]:
        """Accepts all of the tasks or none."""
        try:
            outcomes = await self._repository.enqueue_many(tenant_id, tasks)
        except LeaseMQError as error:
            for queue, times in Counter(task.queue for task in tasks).items():
                self._metrics.count_operation("enqueue", queue, error.code, times)
            raise
        counts = Counter((outcome.queue, "existed" if outcome.existed else "ok") for outcome in outcomes)
        for (queue, outcome), times in counts.items():
            self._metrics.count_operation("enqueue", queue, outcome, times)
        return outcomes

    async def reserve(self, request: ReserveRequest, wait_seconds: float, caller_is_gone: CallerIsGone) -> Reserved:
        """Leases tasks; while there are none, waits for them without holding a database connection."""
        check_lease_seconds(request.lease_seconds)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_seconds
        reserved = await self._reserve_once(request)
        while not reserved.tasks and (left := deadline - loop.time()) > 0:
            await asyncio.sleep(min(self._wait_poll_seconds, left))
            # No lease for a caller that has hung up.
            if await caller_is_gone():
                return reserved
            reserved = await self._reserve_once(request)
        if reserved.tasks and await caller_is_gone():
            await self._give_back(request.tenant_id, reserved)
        self._count_reserved(request, reserved)
        return reserved

    async def extend_many(self, tenant_id: str, items: Sequence[ExtendItem]) -> list[ExtendOutcome]:
        for item in items:
            check_lease_seconds(item.lease_seconds)
        outcomes = await self._repository.extend_many(tenant_id, items)
        self._count_settled("extend", outcomes)
        return outcomes

    async def ack_many(self, tenant_id: str, items: Sequence[AckItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.ack_many(tenant_id, items)
        self._count_settled("ack", outcomes)
        return outcomes

    async def nack_many(self, tenant_id: str, items: Sequence[NackItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.nack_many(tenant_id, items)
        self._count_settled("nack", outcomes)
        return outcomes

    async def release_many(self, tenant_id: str, items: Sequence[ReleaseItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.release_many(tenant_id, items)
        self._count_settled("release", outcomes)
        return outcomes

    async def fail_many(self, tenant_id: str, items: Sequence[FailItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.fail_many(tenant_id, items)
        self._count_settled("fail", outcomes)
        return outcomes

    async def get(self, tenant_id: str, task_id: str) -> Task:
        return await self._repository.get_task(tenant_id, task_id)

    async def list_live(
        self, tenant_id: str, task_filter: TaskFilter, limit: int, after: LiveKey | None
    ) -> Page[Task, LiveKey]:
        return await self._repository.list_live(tenant_id, task_filter, limit, after)

    async def list_finished(
        self, tenant_id: str, task_filter: TaskFilter, limit: int, after: FinishedKey | None
    ) -> Page[Task, FinishedKey]:
        return await self._repository.list_finished(tenant_id, task_filter, limit, after)

    async def attempts(
        self, tenant_id: str, task_id: str, limit: int, after: AttemptKey | None
    ) -> Page[Attempt, AttemptKey]:
        return await self._repository.list_attempts(tenant_id, task_id, limit, after)

    async def edit(self, tenant_id: str, task_id: str, edit: TaskEdit) -> Task:
        task = await self._repository.edit_task(tenant_id, task_id, edit)
        self._metrics.count_operation("edit", task.queue, "ok")
        return task

    async def cancel(self, tenant_id: str, task_id: str, *, force: bool) -> None:
        queue = await self._repository.cancel_task(tenant_id, task_id, force=force)
        self._metrics.count_operation("cancel", queue, "ok")

    async def _reserve_once(self, request: ReserveRequest) -> Reserved:
        turn = replace(request, queues=self._turns.order(request.tenant_id, request.queues))
        reserved = await self._repository.reserve_many(turn)
        if reserved.tasks:
            self._turns.served(request.tenant_id, request.queues, reserved.tasks[-1].task.queue)
        return reserved

    async def _give_back(self, tenant_id: str, reserved: Reserved) -> None:
        items = [ReleaseItem(lease.task.id, lease_token_hash(lease.lease_token)) for lease in reserved.tasks]
        await self.release_many(tenant_id, items)

    def _count_reserved(self, request: ReserveRequest, reserved: Reserved) -> None:
        if not reserved.tasks:
            for queue in request.queues:
                self._metrics.count_operation("reserve", queue, "empty")
        for queue, times in Counter(lease.task.queue for lease in reserved.tasks).items():
            self._metrics.count_operation("reserve", queue, "ok", times)

    def _count_settled(self, operation: str, outcomes: Sequence[Settled | Extended | LeaseMQError]) -> None:
        counts = Counter(
            ("", outcome.code) if isinstance(outcome, LeaseMQError) else (outcome.queue, "ok") for outcome in outcomes
        )
        for (queue, told), times in counts.items():
            self._metrics.count_operation(operation, queue, told, times)


def check_lease_seconds(seconds: float) -> None:
    longest = DEFAULT_QUEUE_SETTINGS.max_lease_seconds
    if seconds > longest:
        raise InvalidRequest(
            f"lease_seconds is over the queue's max_lease_seconds of {longest:g}", location=("body", "lease_seconds")
        )
