"""What surrounds every request, in one ASGI layer: its id, its size, its host, its log line, its metrics."""

import logging
import random
import re
import time
from collections.abc import Awaitable
from functools import lru_cache, partial
from ipaddress import ip_address

from fastapi import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.caller import is_disconnected
from app.api.errors import problem, refusal
from app.api.hot_route import HotRoutes
from app.api.json_body import is_json
from app.api.writing import ReplyWriter
from app.domain.errors import CallerGone, LeaseMQError
from app.domain.identifiers import DEFAULT_TENANT
from app.logs import RequestLog
from app.metrics import Metrics

MAX_REQUEST_BYTES = 8 * 1024 * 1024
REQUEST_ID = b"x-request-id"
UNMATCHED = "unmatched"

_REQUEST_ID = re.compile(r"[\x20-\x7e]{1,128}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:]*)(?::\d+)?")

logger = logging.getLogger(RequestLog.NAME)


class Envelope:
    """The outermost layer; `any_host` answers also to names that are not loopback."""

    def __init__(self, app: ASGIApp, hot: HotRoutes, *, metrics: Metrics, log: RequestLog, any_host: bool) -> None:
        self.app = app
        self.hot = hot
        self.metrics = metrics
        self.log = log
        self.any_host = any_host
        self.replies = ReplyWriter()

    def exchange(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answers one request."""
        return Exchange(self, scope, receive, send).run()


class Exchange:
    """One request and its response."""

    __slots__ = ("_body", "_envelope", "_headers", "_receive", "_received", "_request_id", "_scope", "_send", "_status")

    def __init__(self, envelope: Envelope, scope: Scope, receive: Receive, send: Send) -> None:
        self._envelope = envelope
        self._scope = scope
        self._receive = receive
        self._send = send
        # Of a header that stands there twice the first counts.
        self._headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self._request_id = _request_id(self._headers.get(REQUEST_ID))
        self._received = 0
        self._status = 0
        self._body: bytes | None = None

    async def run(self) -> None:
        started = time.perf_counter()
        try:
            await self._answer()
        except LeaseMQError as error:
            await self._respond(refusal(self._request_id, error))
        except HTTPException as error:
            await self._refuse("payload_too_large", error.detail)
        except Exception as error:
            logger.exception("internal error: %s", type(error).__name__, extra=self._extra())
            if not self._status:
                await self._refuse("internal", "Something went wrong here; the request id is in our log.")
        finally:
            self._record(time.perf_counter() - started)

    async def _answer(self) -> None:
        if not self._envelope.any_host and not _is_loopback(self._headers.get(b"host", b"")):
            await self._refuse("forbidden", "Without keys this server answers only to loopback host names.")
        elif not self._envelope.any_host and self._is_from_foreign_page():
            await self._refuse("forbidden", "Without keys this server does not answer to other sites' pages.")
        elif self._declared_length() > MAX_REQUEST_BYTES:
            await self._refuse("payload_too_large", f"A request has at most {MAX_REQUEST_BYTES} bytes.")
        elif not await self._answer_hot():
            self._scope["state"] = {**self._scope.get("state", {}), "request_id": self._request_id}
            await self._envelope.app(self._scope, self._receive_bounded, self._send_named)

    async def _answer_hot(self) -> bool:
        """Answers by the shortest way, if the request is one of those that are called very often, and sound."""
        scope = self._scope
        found = self._envelope.hot.find(scope["path"])
        if found is None or scope["method"] != "POST" or not is_json(self._headers.get(b"content-type", b"")):
            return False
        route, task_id = found
        self._body = body = await self._read_body()
        tenant_id = self._headers.get(b"x-tenant-id")
        arguments = route.read(body, task_id, DEFAULT_TENANT if tenant_id is None else tenant_id.decode("latin-1"))
        if arguments is None:
            return False
        scope["route"] = route
        await self._respond(
            await route.answer(arguments, scope["app"].state.tasks, partial(is_disconnected, self._receive))
        )
        return True

    async def _read_body(self) -> bytes:
        """The whole body. Raises `CallerGone` where it ends before its time."""
        parts: list[bytes] = []
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise CallerGone
            parts.append(self._bounded(message))
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _respond(self, response: Response) -> None:
        self._status = response.status_code
        headers = [*response.raw_headers, (REQUEST_ID, self._request_id.encode())]
        if self._scope["method"] == "POST":
            whole = await self._envelope.replies.write(self._send, self._status, headers, bytes(response.body))
            if whole:
                return
        await self._send({"type": "http.response.start", "status": self._status, "headers": headers})
        await self._send({"type": "http.response.body", "body": response.body})

    async def _refuse(self, code: str, detail: str) -> None:
        await self._respond(problem(self._request_id, code, detail))

    def _is_from_foreign_page(self) -> bool:
        # A page may send a POST without a body anywhere; its browser tells where the page is from.
        origin = self._headers.get(b"origin")
        return origin is not None and not _is_loopback(origin.partition(b"://")[2])

    def _declared_length(self) -> int:
        length = self._headers.get(b"content-length", b"0")
        return int(length) if length.isdigit() else 0

    async def _receive_bounded(self) -> Message:
        if self._body is not None:
            # It was read already, and is told again to who comes after.
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        message = await self._receive()
        self._bounded(message)
        return message

    def _bounded(self, message: Message) -> bytes:
        """What the message has of the body, which is not without end."""
        body: bytes = message.get("body", b"")
        self._received += len(body)
        if self._received > MAX_REQUEST_BYTES:
            raise HTTPException(413, f"A request has at most {MAX_REQUEST_BYTES} bytes.")
        return body

    async def _send_named(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message["headers"], (REQUEST_ID, self._request_id.encode())]
        await self._send(message)

    def _record(self, seconds: float) -> None:
        # The path is the template, so that labels stay few; the log has the path itself, but no query.
        route = getattr(self._scope.get("route"), "path", UNMATCHED)
        method = self._scope["method"] if route != UNMATCHED else UNMATCHED
        self._envelope.metrics.count_request(method, route, self._status, seconds)
        self._envelope.log.write(self._request_id, self._scope["method"], self._scope["path"], self._status, seconds)

    def _extra(self) -> dict[str, object]:
        return {
            "request_id": self._request_id,
            "method": self._scope["method"],
            "path": self._scope["path"],
            "status": self._status,
        }


def _request_id(given: bytes | None) -> str:
    text = "" if given is None else given.decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else f"{random.getrandbits(128):032x}"


@lru_cache(maxsize=1024)
def _is_loopback(host: bytes) -> bool:
    match = _HOST.fullmatch(host.decode("latin-1"))
    name = match[1].strip("[]").rstrip(".").lower() if match else ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
