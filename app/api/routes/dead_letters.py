"""Dead letters: look, send back, throw away."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.cursor import decode_cursor, encode_cursor
from app.api.dependencies import DeadLetters, TenantId
from app.api.fields import TaskId
from app.api.json_body import JsonRoute
from app.api.queries import DeadLetterParameters
from app.api.replies import DeadLetterListReply, DeadLetterReply, OperationReply, PurgeReply, RequeueReply
from app.api.requests import PurgeBody, RequeueBody, RequeueOneBody
from app.api.responses import json_response, refuses
from app.api.task_views import dead_letter_view
from app.domain.commands import DeadLetterFilter, FinishedKey

router = APIRouter(prefix="/v1/dlq", tags=["dead letters"], route_class=JsonRoute)


@router.get("", response_model=DeadLetterListReply, responses=refuses())
async def list_dead_letters(query: DeadLetterParameters, tenant_id: TenantId, letters: DeadLetters) -> Response:
    """Dead letters, newest first."""
    after = decode_cursor(query.cursor, FinishedKey, of="dlq")
    page = await letters.list(tenant_id, query.to_filter(), query.limit, after)
    items = [dead_letter_view(letter) for letter in page.items]
    return json_response(views.page(items, encode_cursor(page.next_key, of="dlq")))


@router.post(
    "/requeue",
    response_model=RequeueReply,
    responses={
        202: {"description": "It goes on in the background, at the rate given.", "model": OperationReply},
        **refuses("unsupported_media_type"),
    },
)
async def requeue_dead_letters(tenant_id: TenantId, letters: DeadLetters, body: RequeueBody | None = None) -> Response:
    """Sends dead letters back, oldest first; one whose id or key is taken by a live task is skipped."""
    body = body or RequeueBody()
    request = body.to_request(body.to_filter(body.ids), body.limit)
    if body.rate_per_second is not None and not request.dry_run:
        operation = await letters.start_requeue(tenant_id, request, body.rate_per_second)
        location = {"Location": f"/v1/operations/{operation.id}"}
        return json_response(views.operation(operation), 202, location)
    return json_response(views.requeued(await letters.requeue_many(tenant_id, request)))


@router.post("/purge", response_model=PurgeReply, responses=refuses("unsupported_media_type"))
async def purge_dead_letters(tenant_id: TenantId, letters: DeadLetters, body: PurgeBody | None = None) -> Response:
    """Throws dead letters away."""
    body = body or PurgeBody()
    purged = await letters.purge(tenant_id, body.to_filter(), dry_run=body.dry_run is True)
    return json_response({"purged": purged})


@router.get("/{task_id}", response_model=DeadLetterReply, responses=refuses("task_not_found"))
async def get_dead_letter(task_id: TaskId, tenant_id: TenantId, letters: DeadLetters) -> Response:
    """The newest dead letter of the task."""
    return json_response(dead_letter_view(await letters.get(tenant_id, task_id)))


@router.delete("/{task_id}", response_model=PurgeReply, responses=refuses("task_not_found"))
async def delete_dead_letter(task_id: TaskId, tenant_id: TenantId, letters: DeadLetters) -> Response:
    """Throws the newest dead letter of the task away."""
    await letters.delete(tenant_id, task_id)
    return json_response({"purged": 1})


@router.post(
    "/{task_id}/requeue",
    response_model=RequeueReply,
    responses=refuses("task_not_found", "task_exists", "dedupe_conflict", "unsupported_media_type"),
)
async def requeue_dead_letter(
    task_id: TaskId, tenant_id: TenantId, letters: DeadLetters, body: RequeueOneBody | None = None
) -> Response:
    """Sends the newest dead letter of the task back."""
    request = (body or RequeueOneBody()).to_request(DeadLetterFilter(ids=[task_id]))
    return json_response(views.requeued(await letters.requeue_one(tenant_id, task_id, request)))
