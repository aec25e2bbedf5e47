"""For operators: health and metrics."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from app.api import views
from app.api.dependencies import Health, MetricsOf
from app.api.replies import DoctorReply, HealthReply
from app.api.responses import json_response, refuses

router = APIRouter(tags=["operating"])


@router.get("/healthz", response_model=HealthReply)
async def healthz() -> Response:
    """The process is there."""
    return json_response({"status": "ok"})


@router.get("/readyz", response_model=HealthReply, responses=refuses())
async def readyz(health: Health) -> Response:
    """The database answers, and has this version's schema."""
    await health.check()
    return json_response({"status": "ready"})


@router.get("/v1/doctor", response_model=DoctorReply, responses=refuses())
async def doctor(health: Health) -> Response:
    """What is well with the database and what is not, with advice."""
    return json_response(views.diagnosis(await health.diagnose()))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(metrics: MetricsOf) -> Response:
    """Prometheus metrics."""
    return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)
