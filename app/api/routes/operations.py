"""Operations that go on in the background."""

from fastapi import APIRouter, Response

from app.api import views
from app.api.dependencies import DeadLetters, TenantId
from app.api.fields import TaskId
from app.api.json_body import JsonRoute
from app.api.replies import OperationReply
from app.api.responses import json_response, refuses

router = APIRouter(prefix="/v1/operations", tags=["dead letters"], route_class=JsonRoute)


@router.get("/{operation_id}", response_model=OperationReply, responses=refuses("operation_not_found"))
async def get_operation(operation_id: TaskId, tenant_id: TenantId, letters: DeadLetters) -> Response:
    """How far it is."""
    return json_response(views.operation(await letters.get_operation(tenant_id, operation_id)))


@router.delete("/{operation_id}", response_model=OperationReply, responses=refuses("operation_not_found"))
async def stop_operation(operation_id: TaskId, tenant_id: TenantId, letters: DeadLetters) -> Response:
    """Stops it where it is."""
    return json_response(views.operation(await letters.stop_operation(tenant_id, operation_id)))
