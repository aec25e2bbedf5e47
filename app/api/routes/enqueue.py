"""Producers: enqueue."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.dependencies import CallerIsGone, Tasks, TenantId
from app.api.hot_route import HotRoute
from app.api.replies import EnqueueBatchReply, EnqueueReply
from app.api.requests import EnqueueBatch, EnqueueRequest
from app.api.responses import json_response, refuses

router = APIRouter(prefix="/v1", tags=["enqueue"], route_class=HotRoute)
REFUSALS = refuses("task_exists", "payload_too_large", "unsupported_media_type")


@router.post(
    "/tasks",
    status_code=201,
    response_model=EnqueueReply,
    responses={200: {"description": "The task that holds the dedupe key.", "model": EnqueueReply}, **REFUSALS},
)
async def enqueue(body: EnqueueRequest, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Accepts a task; with a dedupe key that is held, tells of the task that holds it."""
    [outcome] = await tasks.enqueue_many(tenant_id, [body.to_task()], is_gone)
    location = {"Location": f"/v1/tasks/{outcome.id}"}
    return json_response(views.enqueued(outcome), 200 if outcome.existed else 201, location)


@router.post("/tasks/batch", response_model=EnqueueBatchReply, responses=REFUSALS)
async def enqueue_batch(body: EnqueueBatch, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Accepts all of the tasks or none."""
    outcomes = await tasks.enqueue_many(tenant_id, [task.to_task() for task in body.tasks], is_gone)
    return json_response({"results": [views.enqueued(outcome) for outcome in outcomes]})
