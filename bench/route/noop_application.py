"""LeaseMQ's application with a service that does nothing: what the routes cost by themselves."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.api.application import Application
from app.domain.commands import AckItem, Reserved, ReserveRequest, Settled, SettleOutcome
from app.domain.task import Enqueued, NewTask, Payload, ReservedTask, Status, Task
from app.garbage import spare_what_stays
from app.logs import RequestLog
from app.metrics import Metrics
from app.service.batcher import IsGone
from bench.route.documents import INSTANT, LEASE_TOKEN, PAYLOAD, TASK_ID

TASK = Task(
    tenant_id="default", id=TASK_ID, queue="bench", topic="bench", publish_id=None, type="",
    payload=Payload(PAYLOAD, is_json=True, content_type="application/json"), meta="{}", priority=20, dedupe_key=None,
    status=Status.LEASED, attempts=1, max_attempts=5, available_at=INSTANT, expires_at=None, timeout_seconds=None,
    lease_owner="bench", lease_until=INSTANT, last_error=None, last_error_at=None, result=None, created_at=INSTANT,
    updated_at=INSTANT, first_leased_at=INSTANT, finished_at=None,
)  # fmt: skip


class NoopTasks:
    """Answers like `TaskService`, and does nothing."""

    async def enqueue_many(self, tenant_id: str, tasks: Sequence[NewTask], is_gone: IsGone) -> list[Enqueued]:
        """Say that the tasks were accepted."""
        return [Enqueued(TASK_ID, task.queue, Status.READY, INSTANT, existed=False) for task in tasks]

    async def reserve(self, request: ReserveRequest, wait_seconds: float, is_gone: IsGone) -> Reserved:
        """Lease always the same task."""
        return Reserved([ReservedTask(TASK, LEASE_TOKEN)], INSTANT)

    async def ack_many(self, tenant_id: str, items: Sequence[AckItem], is_gone: IsGone) -> list[SettleOutcome]:
        """Say that the tasks are done."""
        return [Settled(item.id, "bench", Status.DONE, 1, INSTANT) for item in items]


def create_app() -> FastAPI:
    """What the server process runs."""
    metrics = Metrics(max_queues=1000)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.metrics = metrics
        app.state.tasks = NoopTasks()
        yield

    app = Application("0", metrics, RequestLog(as_json=False), any_host=False, lifespan=lifespan)
    spare_what_stays()
    return app
