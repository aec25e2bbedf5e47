"""Queues: declare, look, change, delete, pause, purge, clean up."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.cursor import decode_cursor, encode_cursor
from app.api.dependencies import Queues, TenantId
from app.api.fields import Name
from app.api.json_body import JsonRoute
from app.api.queries import QueueParameters
from app.api.queue_requests import CleanupBody, KeepAliveBody, QueueBody
from app.api.replies import (
    CleanupReply,
    DeletedReply,
    KeepAliveReply,
    PurgeReply,
    QueueListReply,
    QueueReply,
    StatsReply,
)
from app.api.responses import json_response, refuses
from app.api.task_views import instant
from app.domain.topology import NameKey

router = APIRouter(prefix="/v1/queues", tags=["queues"], route_class=JsonRoute)


@router.get("", response_model=QueueListReply, responses=refuses())
async def list_queues(query: QueueParameters, tenant_id: TenantId, queues: Queues) -> Response:
    """Declared queues, in order of name."""
    page = await queues.list(tenant_id, query.topic, query.limit, decode_cursor(query.cursor, NameKey, of="queues"))
    return json_response(
        views.page([views.queue(queue) for queue in page.items], encode_cursor(page.next_key, of="queues"))
    )


@router.put(
    "/{name}",
    response_model=QueueReply,
    responses={
        201: {"description": "A new queue.", "model": QueueReply},
        **refuses("topic_not_found", "queue_exclusive", "unsupported_media_type"),
    },
)
async def put_queue(name: Name, tenant_id: TenantId, queues: Queues, body: QueueBody | None = None) -> Response:
    """Declares the queue, or changes all of its settings: what is not given takes its default."""
    queue, is_new = await queues.put(tenant_id, name, (body or QueueBody()).to_settings())
    return json_response(views.queue(queue), 201 if is_new else 200, {"Location": f"/v1/queues/{name}"})


@router.patch(
    "/{name}",
    response_model=QueueReply,
    responses=refuses("queue_not_found", "topic_not_found", "unsupported_media_type"),
)
async def patch_queue(name: Name, body: QueueBody, tenant_id: TenantId, queues: Queues) -> Response:
    """Changes the settings that are given."""
    return json_response(views.queue(await queues.patch(tenant_id, name, body.over)))


@router.get("/{name}", response_model=QueueReply, responses=refuses("queue_not_found"))
async def get_queue(name: Name, tenant_id: TenantId, queues: Queues) -> Response:
    """The queue's settings."""
    return json_response(views.queue(await queues.get(tenant_id, name)))


@router.delete("/{name}", response_model=DeletedReply, responses=refuses("queue_not_found"))
async def delete_queue(name: Name, tenant_id: TenantId, queues: Queues) -> Response:
    """Deletes the queue and what waits in it."""
    await queues.delete(tenant_id, name)
    return json_response({"name": name, "deleted": True})


@router.post("/{name}/pause", response_model=QueueReply, responses=refuses())
async def pause_queue(name: Name, tenant_id: TenantId, queues: Queues) -> Response:
    """Delivers nothing from the queue until it is resumed."""
    return json_response(views.queue(await queues.pause(tenant_id, name)))


@router.post("/{name}/resume", response_model=QueueReply, responses=refuses())
async def resume_queue(name: Name, tenant_id: TenantId, queues: Queues) -> Response:
    """Delivers from the queue again."""
    return json_response(views.queue(await queues.resume(tenant_id, name)))


@router.post(
    "/{name}/keep-alive",
    response_model=KeepAliveReply,
    responses=refuses("queue_not_found", "queue_not_exclusive", "unsupported_media_type"),
)
async def keep_alive(name: Name, body: KeepAliveBody, tenant_id: TenantId, queues: Queues) -> Response:
    """Lets an exclusive queue live that long from now."""
    ends_at = await queues.keep_alive(tenant_id, name, body.seconds)
    return json_response({"keep_alive_until": instant(ends_at)})


@router.post("/{name}/purge", response_model=PurgeReply, responses=refuses())
async def purge_queue(name: Name, tenant_id: TenantId, queues: Queues) -> Response:
    """Takes away what waits in the queue."""
    return json_response({"purged": await queues.purge(tenant_id, name)})


@router.post("/{name}/cleanup", response_model=CleanupReply, responses=refuses("unsupported_media_type"))
async def cleanup_queue(name: Name, tenant_id: TenantId, queues: Queues, body: CleanupBody | None = None) -> Response:
    """Deletes the queue's history, or what of it is older."""
    age = (body or CleanupBody()).older_than_seconds or 0.0
    return json_response({"deleted": await queues.cleanup(tenant_id, name, age)})


@router.get("/{name}/stats", response_model=StatsReply, responses=refuses())
async def queue_stats(name: Name, tenant_id: TenantId, queues: Queues) -> Response:
    """How many tasks the queue holds in each state."""
    return json_response(views.stats(await queues.stats(tenant_id, name)))
