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
from app.domain.errors import LeaseMQError
from app.domain.lease_token import lease_token_hash
from app.domain.task import Attempt, Enqueued, NewTask, Task
from app.metrics import Metrics
from app.repository.protocol import Repository
from app.service.turns import Turns
from app.service.waiters import Waiter, Waiters
from app.service.wakeups import WakeUps

CallerIsGone = Callable[[], Awaitable[bool]]

LOOK_AFTER_CALLER_SECONDS = 1.0


class TaskService:
    """Everything about tasks that are not dead letters."""

    def __init__(self, repository: Repository, metrics: Metrics, waiters: Waiters, wakeups: WakeUps) -> None:
        self._repository = repository
        self._metrics = metrics
        self._waiters = waiters
        self._wakeups = wakeups
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
        self._wakeups.announce(tenant_id, Counter(outcome.queue for outcome in outcomes if not outcome.existed))
        return outcomes

    async def reserve(self, request: ReserveRequest, wait_seconds: float, caller_is_gone: CallerIsGone) -> Reserved:
        """Leases tasks; while there are none, waits for them without holding a database connection."""
        if wait_seconds > 0:
            reserved = await self._reserve_or_wait(request, wait_seconds, caller_is_gone)
        else:
            reserved = await self._reserve_once(request)
        if reserved.tasks and await caller_is_gone():
            await self._give_back(request.tenant_id, reserved)
        self._count_reserved(request, reserved)
        return reserved

    async def _reserve_or_wait(
        self, request: ReserveRequest, wait_seconds: float, caller_is_gone: CallerIsGone
    ) -> Reserved:
        deadline = asyncio.get_running_loop().time() + wait_seconds
        with self._waiters.join(request.tenant_id, request.queues) as waiter:
            while True:
                waiter.take_wake()
                reserved = await self._reserve_once(request)
                if reserved.tasks or self._waiters.is_closed:
                    break
                if request.types or request.exclude_ids:
                    self._waiters.pass_on(waiter)
                self._wake_when_due(request, reserved, deadline)
                if not await _is_woken(waiter, deadline, caller_is_gone) or self._waiters.is_closed:
                    break
        for queue in {lease.task.queue for lease in reserved.tasks}:
            # There may be more than this one took.
            self._waiters.wake(request.tenant_id, queue)
        return reserved

    def _wake_when_due(self, request: ReserveRequest, reserved: Reserved, deadline: float) -> None:
        """Only for what comes while this one waits: who waits longer looks for itself."""
        if reserved.next_available_at is not None:
            seconds = (reserved.next_available_at - reserved.server_time).total_seconds()
            if seconds < deadline - asyncio.get_running_loop().time():
                self._waiters.wake_at(request.tenant_id, request.queues, seconds)

    async def extend_many(self, tenant_id: str, items: Sequence[ExtendItem]) -> list[ExtendOutcome]:
        outcomes = await self._repository.extend_many(tenant_id, items)
        self._count_settled("extend", outcomes)
        return outcomes

    async def ack_many(self, tenant_id: str, items: Sequence[AckItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.ack_many(tenant_id, items)
        self._count_settled("ack", outcomes)
        self._wake_settled(tenant_id, outcomes)
        return outcomes

    async def nack_many(self, tenant_id: str, items: Sequence[NackItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.nack_many(tenant_id, items)
        self._count_settled("nack", outcomes)
        self._announce_settled(tenant_id, outcomes)
        return outcomes

    async def release_many(self, tenant_id: str, items: Sequence[ReleaseItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.release_many(tenant_id, items)
        self._count_settled("release", outcomes)
        self._announce_settled(tenant_id, outcomes)
        return outcomes

    async def fail_many(self, tenant_id: str, items: Sequence[FailItem]) -> list[SettleOutcome]:
        outcomes = await self._repository.fail_many(tenant_id, items)
        self._count_settled("fail", outcomes)
        self._wake_settled(tenant_id, outcomes)
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
        self._wakeups.announce(tenant_id, {task.queue: 1})
        self._metrics.count_operation("edit", task.queue, "ok")
        return task

    async def cancel(self, tenant_id: str, task_id: str, *, force: bool) -> None:
        queue = await self._repository.cancel_task(tenant_id, task_id, force=force)
        # A place under a limit may have become free.
        self._waiters.wake(tenant_id, queue)
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

    def _wake_settled(self, tenant_id: str, outcomes: Sequence[SettleOutcome]) -> None:
        """A place under a limit may have become free; other replicas notice by themselves soon enough."""
        for outcome in outcomes:
            if isinstance(outcome, Settled):
                self._waiters.wake(tenant_id, outcome.queue)

    def _announce_settled(self, tenant_id: str, outcomes: Sequence[SettleOutcome]) -> None:
        """Tasks came back."""
        queues = Counter(outcome.queue for outcome in outcomes if isinstance(outcome, Settled))
        self._wakeups.announce(tenant_id, queues)


async def _is_woken(waiter: Waiter, deadline: float, caller_is_gone: CallerIsGone) -> bool:
    """Waits until there may be work, and then is True; False when the time is over or the caller has hung up."""
    loop = asyncio.get_running_loop()
    while (left := deadline - loop.time()) > 0:
        await waiter.sleep(min(left, LOOK_AFTER_CALLER_SECONDS))
        if await caller_is_gone():
            return False
        if waiter.is_woken:
            return True
    return False
