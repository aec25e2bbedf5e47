"""The FastAPI application, without its services: enough for the OpenAPI document."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.envelope import Envelope
from app.api.errors import install_error_handlers
from app.api.replies import Problem
from app.api.routes import dead_letters, enqueue, operating, operations, queues, reserve, settle, tasks, topics
from app.metrics import Metrics

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

DESCRIPTION = """A durable, leased task queue over a SQL database.

Errors are `application/problem+json` with a stable `code`. Times are RFC 3339 in UTC, durations are seconds.
"""


def build_application(version: str, metrics: Metrics, *, any_host: bool, lifespan: Lifespan) -> FastAPI:
    app = FastAPI(
        title="LeaseMQ", version=version, description=DESCRIPTION, lifespan=lifespan, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    # The batch forms of settle come before the routes that take an id.
    for routes in (enqueue, reserve, settle, tasks, dead_letters, operations, topics, queues, operating):
        app.include_router(routes.router)
    install_error_handlers(app)
    app.add_middleware(Envelope, metrics=metrics, any_host=any_host)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's document, with our own description of errors instead of its."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas[Problem.__name__] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schemas[Problem.__name__].pop("$defs", {}))
        app.openapi_schema = document
    return app.openapi_schema
