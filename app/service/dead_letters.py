"""Dead letters: look, send back, throw away."""

from app.domain.commands import DeadLetterFilter, FinishedKey, Page, Requeued, RequeueRequest
from app.domain.task import DeadLetter
from app.domain.topology import Operation
from app.metrics import Metrics
from app.repository.protocol import Repository, TopologyRepository
from app.service.wakeups import WakeUps


class DeadLetterService:
    """Everything about tasks that died."""

    def __init__(
        self, repository: Repository, topology: TopologyRepository, metrics: Metrics, wakeups: WakeUps
    ) -> None:
        self._repository = repository
        self._topology = topology
        self._metrics = metrics
        self._wakeups = wakeups

    async def get(self, tenant_id: str, task_id: str) -> DeadLetter:
        return await self._repository.get_dead_letter(tenant_id, task_id)

    async def list(
        self, tenant_id: str, letters: DeadLetterFilter, limit: int, after: FinishedKey | None
    ) -> Page[DeadLetter, FinishedKey]:
        return await self._repository.list_dead_letters(tenant_id, letters, limit, after)

    async def requeue_one(self, tenant_id: str, task_id: str, request: RequeueRequest) -> Requeued:
        return self._tell(tenant_id, request, await self._repository.requeue_dead_letter(tenant_id, task_id, request))

    async def requeue_many(self, tenant_id: str, request: RequeueRequest) -> Requeued:
        return self._tell(tenant_id, request, await self._repository.requeue_dead_letters(tenant_id, request))

    async def start_requeue(self, tenant_id: str, request: RequeueRequest, rate_per_second: float) -> Operation:
        """Begins a requeue that goes on in the background."""
        return await self._topology.start_operation(tenant_id, request, rate_per_second)

    async def get_operation(self, tenant_id: str, operation_id: str) -> Operation:
        return await self._topology.get_operation(tenant_id, operation_id)

    async def stop_operation(self, tenant_id: str, operation_id: str) -> Operation:
        return await self._topology.stop_operation(tenant_id, operation_id)

    async def delete(self, tenant_id: str, task_id: str) -> None:
        await self._repository.delete_dead_letter(tenant_id, task_id)

    async def purge(self, tenant_id: str, letters: DeadLetterFilter, *, dry_run: bool) -> int:
        return await self._repository.purge_dead_letters(tenant_id, letters, dry_run=dry_run)

    def _tell(self, tenant_id: str, request: RequeueRequest, requeued: Requeued) -> Requeued:
        if not request.dry_run:
            self._wakeups.announce(tenant_id, requeued.queues)
            for queue, times in requeued.queues.items():
                self._metrics.count_operation("requeue", queue, "ok", times)
        return requeued
