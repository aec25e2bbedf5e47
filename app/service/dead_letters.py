"""Dead letters: look, send back, throw away."""

from app.domain.commands import DeadLetterFilter, FinishedKey, Page, Requeued, RequeueRequest
from app.domain.task import DeadLetter
from app.metrics import Metrics
from app.repository.protocol import Repository


class DeadLetterService:
    """Everything about tasks that died."""

    def __init__(self, repository: Repository, metrics: Metrics) -> None:
        self._repository = repository
        self._metrics = metrics

    async def get(self, tenant_id: str, task_id: str) -> DeadLetter:
        return await self._repository.get_dead_letter(tenant_id, task_id)

    async def list(
        self, tenant_id: str, letters: DeadLetterFilter, limit: int, after: FinishedKey | None
    ) -> Page[DeadLetter, FinishedKey]:
        return await self._repository.list_dead_letters(tenant_id, letters, limit, after)

    async def requeue_one(self, tenant_id: str, task_id: str, request: RequeueRequest) -> Requeued:
        return self._count(request, await self._repository.requeue_dead_letter(tenant_id, task_id, request))

    async def requeue_many(self, tenant_id: str, request: RequeueRequest) -> Requeued:
        return self._count(request, await self._repository.requeue_dead_letters(tenant_id, request))

    async def delete(self, tenant_id: str, task_id: str) -> None:
        await self._repository.delete_dead_letter(tenant_id, task_id)

    async def purge(self, tenant_id: str, letters: DeadLetterFilter, *, dry_run: bool) -> int:
        return await self._repository.purge_dead_letters(tenant_id, letters, dry_run=dry_run)

    def _count(self, request: RequeueRequest, requeued: Requeued) -> Requeued:
        if not request.dry_run:
            for queue, times in requeued.queues.items():
                self._metrics.count_operation("requeue", queue, "ok", times)
        return requeued
