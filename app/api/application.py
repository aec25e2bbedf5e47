"""The FastAPI application, without its services: enough for the OpenAPI document."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import Receive, Scope, Send

from app.api.envelope import Envelope
from app.api.errors import install_error_handlers
from app.api.hot_route import HotRoutes
from app.api.replies import Problem
from app.api.routes import dead_letters, enqueue, operating, operations, queues, reserve, settle, tasks, topics
from app.logs import RequestLog
from app.metrics import Metrics

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

# The batch forms of settle come before the routes that take an id.
ROUTES = (enqueue, reserve, settle, tasks, dead_letters, operations, topics, queues, operating)
HOT_ROUTES = HotRoutes(route for hot in (enqueue, reserve, settle) for route in hot.router.routes)

DESCRIPTION = """A durable, leased task queue over a SQL database.

Errors are `application/problem+json` with a stable `code`. Times are RFC 3339 in UTC, durations are seconds.
"""


class Application(FastAPI):
    """FastAPI with an envelope around it: that is the outermost, so that hot routes pass by everything else."""

    def __init__(self, version: str, metrics: Metrics, log: RequestLog, *, any_host: bool, lifespan: Lifespan) -> None:
        super().__init__(
            title="LeaseMQ", version=version, description=DESCRIPTION, lifespan=lifespan, redoc_url=None,
            redirect_slashes=False,
        )  # fmt: skip
        for routes in ROUTES:
            self.include_router(routes.router)
        install_error_handlers(self)
        self._envelope = Envelope(super().__call__, HOT_ROUTES, metrics=metrics, log=log, any_host=any_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self._envelope.exchange(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """FastAPI's document, with our own description of errors instead of its."""
        if self.openapi_schema is None:
            document = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes
            )
            schemas = document["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas[Problem.__name__] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schemas[Problem.__name__].pop("$defs", {}))
            self.openapi_schema = document
        return self.openapi_schema
