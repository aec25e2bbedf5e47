"""What every reply must be, whatever the test: one of the described replies, or a whole problem."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx

from app.api import replies
from app.api.errors import STATUS_OF_CODE

INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
IS_INSTANT = re.compile(r"\w+_(at|until)|server_time")
ID = r"[^/?]+"

MODELS: Mapping[str, type[replies.Reply]] = {
    "POST /v1/tasks": replies.EnqueueReply,
    "POST /v1/tasks/batch": replies.EnqueueBatchReply,
    "POST /v1/reserve": replies.ReserveReply,
    "POST /v1/tasks/extend": replies.ExtendBatchReply,
    "POST /v1/tasks/nack": replies.NackBatchReply,
    "POST /v1/tasks/(ack|release|fail)": replies.SettleBatchReply,
    f"POST /v1/tasks/{ID}/extend": replies.ExtendReply,
    f"POST /v1/tasks/{ID}/nack": replies.NackReply,
    f"POST /v1/tasks/{ID}/(ack|release|fail)": replies.SettleReply,
    "GET /v1/doctor": replies.DoctorReply,
    "GET /v1/tasks": replies.TaskListReply,
    f"GET /v1/tasks/{ID}": replies.TaskReply,
    f"PATCH /v1/tasks/{ID}": replies.TaskReply,
    f"DELETE /v1/tasks/{ID}": replies.SettleReply,
    f"GET /v1/tasks/{ID}/attempts": replies.AttemptListReply,
    "GET /v1/dlq": replies.DeadLetterListReply,
    "POST /v1/dlq/requeue": replies.RequeueReply,
    "POST /v1/dlq/purge": replies.PurgeReply,
    f"GET /v1/dlq/{ID}": replies.DeadLetterReply,
    f"DELETE /v1/dlq/{ID}": replies.PurgeReply,
    f"POST /v1/dlq/{ID}/requeue": replies.RequeueReply,
    "GET /(healthz|readyz)": replies.HealthReply,
}
NOT_JSON = frozenset({"/metrics", "/docs", "/openapi.json"})


class ReplyCheck:
    """Holds every reply of a client to the described ones, and sees that no token is told twice."""

    def __init__(self) -> None:
        self._tokens: set[str] = set()

    def __call__(self, response: httpx.Response) -> None:
        response.read()
        assert response.headers["X-Request-Id"]
        if response.is_error:
            check_problem(response)
        elif response.request.url.path not in NOT_JSON:
            self._check_reply(response)
        self._check_tokens(response)

    def _check_reply(self, response: httpx.Response) -> None:
        assert response.headers["Content-Type"] == "application/json"
        reply = read(response)
        model_of(response.request).model_validate_json(json.dumps(reply), strict=True)
        check_fields(reply)

    def _check_tokens(self, response: httpx.Response) -> None:
        """A token is given by the reserve that made it, and by nothing else."""
        assert not [token for token in self._tokens if token in response.text]
        if response.request.url.path == "/v1/reserve" and response.is_success:
            self._tokens |= {task["lease_token"] for task in read(response)["tasks"]}


def read(response: httpx.Response) -> Any:
    """A reply without the values that callers gave: a reader of JSON need not be able to hold all of them."""
    return json.loads(response.content, parse_int=_read_integer, object_hook=_without_given)


def _read_integer(digits: str) -> int:
    return int(digits[:20])


def _without_given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: None if name in {"payload", "result"} else value for name, value in fields.items()}


def model_of(request: httpx.Request) -> type[replies.Reply]:
    """The reply that is described for a request."""
    asked = f"{request.method} {request.url.path}"
    return next(model for route, model in MODELS.items() if re.fullmatch(route, asked))


def check_fields(value: Any) -> None:
    """Instants are in UTC with microseconds, and a task has one kind of payload."""
    if isinstance(value, list):
        for item in value:
            check_fields(item)
    if isinstance(value, dict):
        if "content_type" in value:
            assert ("payload" in value) != ("payload_base64" in value)
        for name, item in value.items():
            if IS_INSTANT.fullmatch(name) and item is not None:
                assert INSTANT.fullmatch(item), (name, item)
            if name != "meta":
                check_fields(item)


def check_problem(response: httpx.Response) -> None:
    """An error is `application/problem+json` with every field that belongs to it."""
    assert response.headers["Content-Type"] == "application/problem+json", response.text
    problem = replies.Problem.model_validate_json(response.content, strict=True).model_dump()
    told = {"type", "title", "status", "detail", "code", "request_id"}
    told |= {422: {"errors"}, 503: {"applied"}}.get(response.status_code, set())
    assert set(response.json()) == told
    assert problem["status"] == response.status_code == STATUS_OF_CODE[problem["code"]], response.text
    assert problem["request_id"] == response.headers["X-Request-Id"]
    assert problem["type"]
    assert problem["title"]
    assert problem["detail"]
    assert response.status_code != 422 or problem["errors"]
    assert response.status_code != 503 or int(response.headers["Retry-After"]) > 0


def refused(response: httpx.Response) -> tuple[int, str]:
    """The status and code of a refusal."""
    return response.status_code, response.json()["code"]
