"""One connection to the service, kept open; what may pass is tried again, for a while."""

import random
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from app.pipeline.errors import PipelineError
from app.pipeline.sink.errors import DeliveryError
from app.pipeline.sink.options import SinkOptions

PATH = "/v1/tasks/batch"
# The service is away or sheds load; 500, 502 and 504 come from it or from what stands before it.
PASSING = frozenset({429, 500, 502, 503, 504})
# About the rows, not about the caller.
REFUSALS = frozenset({409, 413, 422})
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 15.0


class Reply(NamedTuple):
    """What the service answered."""

    status: int
    body: bytes
    retry_after_seconds: float


class Problem(msgspec.Struct):
    """A refusal (RFC 9457), as far as it is looked at."""

    code: str = ""
    detail: str = ""
    errors: list["Fault"] = []


class Fault(msgspec.Struct):
    loc: list[str | int] = []
    msg: str = ""


class Client:
    """Posts batches; a repetition is safe because every row has its dedupe key."""

    def __init__(self, options: SinkOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._sleep = sleep
        self._parts = urlsplit(options.url)
        self._headers = {"Content-Type": "application/json"}
        if options.api_key is not None:
            self._headers["Authorization"] = f"Bearer {options.api_key}"
        self._connection: HTTPConnection | None = None
        self._started: tuple[bytes, str | None] = (b"", None)
        # Why the batch that was started did not leave.
        self._trouble = ""

    def post(self, body: bytes, tenant: str | None) -> Reply:
        """The service's reply to a batch, a refusal of rows included; raises `DeliveryError` when there is none."""
        self.start(body, tenant)
        return self.finish()

    def start(self, body: bytes, tenant: str | None) -> None:
        """Sends a batch; what came of it is told by `finish`, so that the caller can do something else meanwhile."""
        self._started = (body, tenant)
        self._trouble = self._send(body, tenant)

    def finish(self) -> Reply:
        """As `post`, of the batch that was started; one that did not arrive is sent again."""
        give_up_at = time.monotonic() + self._options.retry_seconds
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            reply = self._receive()
            if isinstance(reply, Reply) and reply.status not in PASSING:
                return _settled(reply)
            asked_seconds = reply.retry_after_seconds if isinstance(reply, Reply) else 0.0
            wait_seconds = max(pause_seconds * random.uniform(0.5, 1.0), asked_seconds)
            if time.monotonic() + wait_seconds > give_up_at:
                raise DeliveryError(f"{_address(self._options)} could not take a batch: {_told(reply)}")
            self._sleep(wait_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
            self.start(*self._started)

    def probe(self) -> None:
        """Raises `PipelineError` unless the service would take tasks from this caller; enqueues nothing."""
        self.start(b'{"tasks":[]}', self._options.tenant)
        reply = self._receive()
        if not isinstance(reply, Reply):
            raise PipelineError(f"{_address(self._options)} cannot be reached: {reply}")
        # A batch of none is refused by whoever knows what a batch is.
        if reply.status != 422 or problem_of(reply).code != "invalid_request":
            raise PipelineError(f"{_address(self._options)} takes no tasks from here: {_told(reply)}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, body: bytes, tenant: str | None) -> str:
        """Sends a request, and tells in words what went wrong, if anything did."""
        headers = self._headers if tenant is None else {**self._headers, "X-Tenant-Id": tenant}
        try:
            self._open().request("POST", self._parts.path + PATH, body, headers)
        except (OSError, HTTPException) as error:
            return self._lost(error)
        return ""

    def _receive(self) -> Reply | str:
        """The reply to what was sent, or in words why there is none."""
        if self._trouble:
            return self._trouble
        try:
            response = self._open().getresponse()
            return Reply(response.status, response.read(), _seconds(response.getheader("Retry-After")))
        except (OSError, HTTPException) as error:
            return self._lost(error)

    def _lost(self, error: Exception) -> str:
        self.close()
        return f"{type(error).__name__}: {error}"

    def _open(self) -> HTTPConnection:
        if self._connection is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            host = self._parts.hostname or ""
            self._connection = kind(host, self._parts.port, timeout=self._options.request_seconds)
        return self._connection


def problem_of(reply: Reply) -> Problem:
    """The refusal in the reply; an empty one if it is none of LeaseMQ's."""
    try:
        return msgspec.json.decode(reply.body, type=Problem)
    except msgspec.DecodeError:
        return Problem()


def _settled(reply: Reply) -> Reply:
    if reply.status == 200 or (reply.status in REFUSALS and problem_of(reply).code):
        return reply
    raise DeliveryError(f"the service takes no tasks from here: {_told(reply)}")


def _told(reply: Reply | str) -> str:
    if isinstance(reply, str):
        return reply
    problem = problem_of(reply)
    return f"{reply.status} {problem.code} {problem.detail}".strip()


def _address(options: SinkOptions) -> str:
    parts = urlsplit(options.url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.0
