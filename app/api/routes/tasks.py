"""Look at tasks, change and cancel them."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.cursor import decode_cursor, encode_cursor
from app.api.dependencies import Queues, Tasks, TenantId
from app.api.fields import TaskId
from app.api.json_body import JsonRoute
from app.api.queries import CancelParameters, PagingParameters, TaskParameters
from app.api.replies import AttemptListReply, ExplainReply, SettleReply, TaskListReply, TaskReply
from app.api.requests import EditBody
from app.api.responses import json_response, refuses
from app.api.task_views import task_view
from app.domain.commands import AttemptKey, FinishedKey, LiveKey
from app.domain.task import LIVE_STATUSES, Status

router = APIRouter(prefix="/v1", tags=["tasks"], route_class=JsonRoute)


@router.get("/tasks", response_model=TaskListReply, responses=refuses())
async def list_tasks(query: TaskParameters, tenant_id: TenantId, tasks: Tasks) -> Response:
    """Live tasks in order of acceptance, or those that finished in one way, newest first."""
    wanted = query.to_filter()
    if wanted.status is None or wanted.status in LIVE_STATUSES:
        after = decode_cursor(query.cursor, LiveKey, of="live")
        live = await tasks.list_live(tenant_id, wanted, query.limit, after)
        items, cursor = live.items, encode_cursor(live.next_key, of="live")
    else:
        until = decode_cursor(query.cursor, FinishedKey, of=wanted.status)
        finished = await tasks.list_finished(tenant_id, wanted, query.limit, until)
        items, cursor = finished.items, encode_cursor(finished.next_key, of=wanted.status)
    return json_response(views.page([task_view(task) for task in items], cursor))


@router.get("/tasks/{task_id}", response_model=TaskReply, responses=refuses("task_not_found"))
async def get_task(task_id: TaskId, tenant_id: TenantId, tasks: Tasks) -> Response:
    """The task in whatever state."""
    return json_response(task_view(await tasks.get(tenant_id, task_id)))


@router.get("/tasks/{task_id}/attempts", response_model=AttemptListReply, responses=refuses("task_not_found"))
async def list_attempts(task_id: TaskId, query: PagingParameters, tenant_id: TenantId, tasks: Tasks) -> Response:
    """The attempts in order of start, the running one included."""
    page = await tasks.attempts(
        tenant_id, task_id, query.limit, decode_cursor(query.cursor, AttemptKey, of=f"attempts of {task_id}")
    )
    return json_response(
        views.page(
            [views.attempt(item) for item in page.items], encode_cursor(page.next_key, of=f"attempts of {task_id}")
        )
    )


@router.get("/tasks/{task_id}/explain", response_model=ExplainReply, responses=refuses("task_not_found"))
async def explain_task(task_id: TaskId, tenant_id: TenantId, queues: Queues) -> Response:
    """Why the task is not running now."""
    return json_response(views.explanation(await queues.explain(tenant_id, task_id)))


@router.patch(
    "/tasks/{task_id}",
    response_model=TaskReply,
    responses=refuses("task_not_found", "task_leased", "task_finished", "unsupported_media_type"),
)
async def edit_task(task_id: TaskId, body: EditBody, tenant_id: TenantId, tasks: Tasks) -> Response:
    """Changes a task that waits."""
    return json_response(task_view(await tasks.edit(tenant_id, task_id, body.to_edit())))


@router.delete(
    "/tasks/{task_id}",
    response_model=SettleReply,
    responses=refuses("task_not_found", "task_leased", "task_finished"),
)
async def cancel_task(
    task_id: TaskId,
    query: CancelParameters,
    tenant_id: TenantId,
    tasks: Tasks,
) -> Response:
    """Cancels the task."""
    await tasks.cancel(tenant_id, task_id, force=query.force)
    return json_response({"id": task_id, "status": Status.CANCELLED})
