"""Workers: reserve."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.dependencies import CallerIsGone, Tasks, TenantId
from app.api.hot_route import HotRoute
from app.api.replies import ReserveReply
from app.api.requests import ReserveBody
from app.api.responses import json_response, refuses

router = APIRouter(prefix="/v1", tags=["reserve"], route_class=HotRoute)


@router.post("/reserve", response_model=ReserveReply, responses=refuses("unsupported_media_type"))
async def reserve(body: ReserveBody, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Leases tasks; with `wait_seconds`, waits for them."""
    reserved = await tasks.reserve(body.to_request(tenant_id), body.wait_seconds or 0.0, is_gone)
    return json_response(views.reserved(reserved))
