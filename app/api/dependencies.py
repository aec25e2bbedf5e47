"""What routes are given."""

from functools import partial
from typing import Annotated, cast

from fastapi import Depends, Header, Request

from app.api.caller import is_disconnected
from app.api.fields import Tenant
from app.domain.identifiers import DEFAULT_TENANT
from app.metrics import Metrics
from app.service.batcher import IsGone
from app.service.dead_letters import DeadLetterService
from app.service.health import HealthService
from app.service.queues import QueueService, TopicService
from app.service.tasks import TaskService


def _tenant_id(x_tenant_id: Annotated[Tenant, Header(description="Whose tasks.")] = DEFAULT_TENANT) -> str:
    return x_tenant_id


def _tasks(request: Request) -> TaskService:
    return cast(TaskService, request.app.state.tasks)


def _dead_letters(request: Request) -> DeadLetterService:
    return cast(DeadLetterService, request.app.state.dead_letters)


def _queues(request: Request) -> QueueService:
    return cast(QueueService, request.app.state.queues)


def _topics(request: Request) -> TopicService:
    return cast(TopicService, request.app.state.topics)


def _health(request: Request) -> HealthService:
    return cast(HealthService, request.app.state.health)


def _is_gone(request: Request) -> IsGone:
    return partial(is_disconnected, request.receive)


def _metrics(request: Request) -> Metrics:
    return cast(Metrics, request.app.state.metrics)


TenantId = Annotated[str, Depends(_tenant_id)]
Tasks = Annotated[TaskService, Depends(_tasks)]
DeadLetters = Annotated[DeadLetterService, Depends(_dead_letters)]
Queues = Annotated[QueueService, Depends(_queues)]
Topics = Annotated[TopicService, Depends(_topics)]
Health = Annotated[HealthService, Depends(_health)]
CallerIsGone = Annotated[IsGone, Depends(_is_gone)]
MetricsOf = Annotated[Metrics, Depends(_metrics)]
