"""What surrounds every request, in one ASGI layer: its id, its size, its host, its log line, its metrics."""

import logging
import re
import time
import uuid
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import problem
from app.metrics import Metrics

MAX_REQUEST_BYTES = 8 * 1024 * 1024
REQUEST_ID = "X-Request-Id"
UNMATCHED = "unmatched"

_REQUEST_ID = re.compile(r"[\x20-\x7e]{1,128}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:]*)(?::\d+)?")

logger = logging.getLogger("leasemq.http")


class Envelope:
    """The outermost layer; `any_host` answers also to names that are not loopback."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, any_host: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._any_host = any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await Exchange(self._app, scope, receive, send).run(self._metrics, any_host=self._any_host)


class Exchange:
    """One request and its response."""

    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers = Headers(scope=scope)
        self._request_id = _request_id(self._headers.get(REQUEST_ID))
        self._received = 0
        self._status = 0
        scope.setdefault("state", {})["request_id"] = self._request_id

    async def run(self, metrics: Metrics, *, any_host: bool) -> None:
        started = time.perf_counter()
        try:
            await self._answer(any_host=any_host)
        except Exception as error:
            logger.exception("internal error: %s", type(error).__name__, extra=self._extra())
            if not self._status:
                detail = "Something went wrong here; the request id is in our log."
                await self._reply("internal", detail)
        finally:
            self._record(metrics, time.perf_counter() - started)

    async def _answer(self, *, any_host: bool) -> None:
        if not any_host and not _is_loopback(self._headers.get("host", "")):
            await self._reply("forbidden", "Without keys this server answers only to loopback host names.")
        elif not any_host and self._is_from_foreign_page():
            await self._reply("forbidden", "Without keys this server does not answer to other sites' pages.")
        elif self._declared_length() > MAX_REQUEST_BYTES:
            await self._reply("payload_too_large", f"A request has at most {MAX_REQUEST_BYTES} bytes.")
        else:
            await self._app(self._scope, self._receive_bounded, self._send_named)

    async def _reply(self, code: str, detail: str) -> None:
        await problem(self._request_id, code, detail)(self._scope, self._receive, self._send_named)

    def _is_from_foreign_page(self) -> bool:
        # A page may send a POST without a body anywhere; its browser tells where the page is from.
        origin = self._headers.get("origin")
        return origin is not None and not _is_loopback(origin.partition("://")[2])

    def _declared_length(self) -> int:
        length = self._headers.get("content-length", "0")
        return int(length) if length.isdecimal() else 0

    async def _receive_bounded(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > MAX_REQUEST_BYTES:
            raise HTTPException(413, f"A request has at most {MAX_REQUEST_BYTES} bytes.")
        return message

    async def _send_named(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID] = self._request_id
        await self._send(message)

    def _record(self, metrics: Metrics, seconds: float) -> None:
        # The path is the template, so that labels stay few; the log has the path itself, but no query.
        route = getattr(self._scope.get("route"), "path", UNMATCHED)
        method = self._scope["method"] if route != UNMATCHED else UNMATCHED
        metrics.count_request(method, route, self._status, seconds)
        logger.info("request", extra={**self._extra(), "milliseconds": round(seconds * 1000, 3)})

    def _extra(self) -> dict[str, object]:
        return {
            "request_id": self._request_id,
            "method": self._scope["method"],
            "path": self._scope["path"],
            "status": self._status,
        }


def _request_id(given: str | None) -> str:
    return given if given and _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _is_loopback(host: str) -> bool:
    match = _HOST.fullmatch(host)
    name = match[1].strip("[]").rstrip(".").lower() if match else ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
