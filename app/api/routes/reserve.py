"""Workers: reserve."""

from fastapi import APIRouter, Request, Response

from app.api import views
from app.api.dependencies import Tasks, TenantId
from app.api.json_body import JsonRoute
from app.api.replies import ReserveReply
from app.api.requests import ReserveBody
from app.api.responses import json_response, refuses

router = APIRouter(prefix="/v1", tags=["reserve"], route_class=JsonRoute)


@router.post("/reserve", response_model=ReserveReply, responses=refuses("unsupported_media_type"))
async def reserve(body: ReserveBody, tenant_id: TenantId, tasks: Tasks, request: Request) -> Response:
    """Leases tasks; with `wait_seconds`, waits for them."""
    reserved = await tasks.reserve(body.to_request(tenant_id), body.wait_seconds or 0.0, request.is_disconnected)
    return json_response(views.reserved(reserved))
