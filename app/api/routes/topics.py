"""Topics: declare, look, delete, publish."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.cursor import decode_cursor, encode_cursor
from app.api.dependencies import TenantId, Topics
from app.api.fields import Name
from app.api.json_body import JsonRoute
from app.api.queries import PagingParameters
from app.api.queue_requests import CleanupBody, PublishRequest, TopicBody
from app.api.replies import CleanupReply, DeletedReply, PublishReply, TopicListReply, TopicReply
from app.api.responses import json_response, refuses
from app.domain.topology import NameKey

router = APIRouter(prefix="/v1/topics", tags=["topics"], route_class=JsonRoute)


@router.get("", response_model=TopicListReply, responses=refuses())
async def list_topics(query: PagingParameters, tenant_id: TenantId, topics: Topics) -> Response:
    """Topics, in order of name."""
    page = await topics.list(tenant_id, query.limit, decode_cursor(query.cursor, NameKey, of="topics"))
    return json_response(
        views.page([views.topic(topic) for topic in page.items], encode_cursor(page.next_key, of="topics"))
    )


@router.put(
    "/{name}",
    response_model=TopicReply,
    responses={201: {"description": "A new topic.", "model": TopicReply}, **refuses("unsupported_media_type")},
)
async def put_topic(name: Name, tenant_id: TenantId, topics: Topics, body: TopicBody | None = None) -> Response:
    """Declares the topic."""
    topic, is_new = await topics.put(tenant_id, name)
    return json_response(views.topic(topic), 201 if is_new else 200, {"Location": f"/v1/topics/{name}"})


@router.get("/{name}", response_model=TopicReply, responses=refuses("topic_not_found"))
async def get_topic(name: Name, tenant_id: TenantId, topics: Topics) -> Response:
    """The topic."""
    return json_response(views.topic(await topics.get(tenant_id, name)))


@router.delete("/{name}", response_model=DeletedReply, responses=refuses("topic_not_found"))
async def delete_topic(name: Name, tenant_id: TenantId, topics: Topics) -> Response:
    """Deletes the topic, its queues, and what waits in them."""
    await topics.delete(tenant_id, name)
    return json_response({"name": name, "deleted": True})


@router.post(
    "/{name}/publish",
    status_code=201,
    response_model=PublishReply,
    responses=refuses("topic_not_found", "payload_too_large", "unsupported_media_type"),
)
async def publish(name: Name, body: PublishRequest, tenant_id: TenantId, topics: Topics) -> Response:
    """Makes one task for every queue that is subscribed at this moment."""
    return json_response(views.published(await topics.publish(tenant_id, name, body.to_message(name))), 201)


@router.post(
    "/{name}/cleanup",
    response_model=CleanupReply,
    responses=refuses("topic_not_found", "unsupported_media_type"),
)
async def cleanup_topic(name: Name, tenant_id: TenantId, topics: Topics, body: CleanupBody | None = None) -> Response:
    """Deletes the history of the topic's queues, or what of it is older."""
    age = (body or CleanupBody()).older_than_seconds or 0.0
    return json_response({"deleted": await topics.cleanup(tenant_id, name, age)})
