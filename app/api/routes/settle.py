"""Workers: extend, ack, nack, release and fail while a lease lasts, single and in batches."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from fastapi import APIRouter, Response

from app.api import views
from app.api.dependencies import CallerIsGone, Tasks, TenantId
from app.api.fields import TaskId
from app.api.hot_route import HotRoute
from app.api.replies import (
    ExtendBatchReply,
    ExtendReply,
    NackBatchReply,
    NackReply,
    SettleBatchReply,
    SettleReply,
)
from app.api.requests import (
    AckBatch,
    AckBody,
    ExtendBatch,
    ExtendBody,
    FailBatch,
    FailBody,
    NackBatch,
    NackBody,
    ReleaseBatch,
    ReleaseBody,
)
from app.api.responses import json_response, refuses
from app.domain.commands import Extended, LeaseRef, Settled
from app.domain.errors import LeaseMQError

router = APIRouter(prefix="/v1", tags=["settle"], route_class=HotRoute)
SINGLE = refuses("task_not_found", "lease_expired", "lease_mismatch", "task_not_leased", "unsupported_media_type")
SINGLE_ACK = refuses(
    "task_not_found", "lease_expired", "lease_mismatch", "task_not_leased", "unsupported_media_type",
    "payload_too_large",
)  # fmt: skip
BATCH = refuses("unsupported_media_type", "payload_too_large")

Success = TypeVar("Success", Extended, Settled)


def _reply(outcome: Success | LeaseMQError, view: Callable[[Success], views.Json]) -> Response:
    if isinstance(outcome, LeaseMQError):
        raise outcome
    return json_response(view(outcome))


def _reply_many(
    items: Sequence[LeaseRef],
    outcomes: Sequence[Success | LeaseMQError],
    view: Callable[[Success], views.Json | views.SettledItem],
) -> Response:
    return json_response(
        {
            "results": [
                views.refused(item.id, outcome) if isinstance(outcome, LeaseMQError) else view(outcome)
                for item, outcome in zip(items, outcomes, strict=True)
            ]
        }
    )


@router.post("/tasks/extend", response_model=ExtendBatchReply, responses=BATCH)
async def extend_batch(body: ExtendBatch, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Extends each lease whose token is right."""
    items = [entry.to_item(entry.id) for entry in body.items]
    return _reply_many(items, await tasks.extend_many(tenant_id, items, is_gone), views.extended_item)


@router.post("/tasks/ack", response_model=SettleBatchReply, responses=BATCH)
async def ack_batch(body: AckBatch, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Marks each task whose token is right as done."""
    items = [entry.to_item(entry.id) for entry in body.items]
    return _reply_many(items, await tasks.ack_many(tenant_id, items, is_gone), views.settled_item)


@router.post("/tasks/nack", response_model=NackBatchReply, responses=BATCH)
async def nack_batch(body: NackBatch, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Gives each task whose token is right back for another attempt."""
    items = [entry.to_item(entry.id) for entry in body.items]
    return _reply_many(items, await tasks.nack_many(tenant_id, items, is_gone), views.nacked_item)


@router.post("/tasks/release", response_model=SettleBatchReply, responses=BATCH)
async def release_batch(body: ReleaseBatch, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Gives each task whose token is right back as if it had never been delivered."""
    items = [entry.to_item(entry.id) for entry in body.items]
    return _reply_many(items, await tasks.release_many(tenant_id, items, is_gone), views.settled_item)


@router.post("/tasks/fail", response_model=SettleBatchReply, responses=BATCH)
async def fail_batch(body: FailBatch, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Makes each task whose token is right a dead letter."""
    items = [entry.to_item(entry.id) for entry in body.items]
    return _reply_many(items, await tasks.fail_many(tenant_id, items, is_gone), views.settled_item)


@router.post("/tasks/{task_id}/extend", response_model=ExtendReply, responses=SINGLE)
async def extend(
    task_id: TaskId, body: ExtendBody, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone
) -> Response:
    """Lets the lease end that long from now."""
    [outcome] = await tasks.extend_many(tenant_id, [body.to_item(task_id)], is_gone)
    return _reply(outcome, views.extended)


@router.post("/tasks/{task_id}/ack", response_model=SettleReply, responses=SINGLE_ACK)
async def ack(task_id: TaskId, body: AckBody, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Marks the task as done; a repeat with the same token is a success again."""
    [outcome] = await tasks.ack_many(tenant_id, [body.to_item(task_id)], is_gone)
    return _reply(outcome, views.settled)


@router.post("/tasks/{task_id}/nack", response_model=NackReply, responses=SINGLE)
async def nack(task_id: TaskId, body: NackBody, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Gives the task back for another attempt, or makes it a dead letter if none is left."""
    [outcome] = await tasks.nack_many(tenant_id, [body.to_item(task_id)], is_gone)
    return _reply(outcome, views.nacked)


@router.post("/tasks/{task_id}/release", response_model=SettleReply, responses=SINGLE)
async def release(
    task_id: TaskId, body: ReleaseBody, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone
) -> Response:
    """Gives the task back as if it had never been delivered."""
    [outcome] = await tasks.release_many(tenant_id, [body.to_item(task_id)], is_gone)
    return _reply(outcome, views.settled)


@router.post("/tasks/{task_id}/fail", response_model=SettleReply, responses=SINGLE)
async def fail(task_id: TaskId, body: FailBody, tenant_id: TenantId, tasks: Tasks, is_gone: CallerIsGone) -> Response:
    """Makes the task a dead letter; a repeat with the same token is a success again."""
    [outcome] = await tasks.fail_many(tenant_id, [body.to_item(task_id)], is_gone)
    return _reply(outcome, views.settled)
