"""Refusals as `application/problem+json` (RFC 9457), with the only table of HTTP statuses."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from app.domain.errors import InvalidRequest, LeaseMQError, Unavailable

STATUS_OF_CODE: Mapping[str, int] = {
    "invalid_request": 422,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "forbidden": 403,
    "not_found": 404,
    "task_not_found": 404,
    "queue_not_found": 404,
    "topic_not_found": 404,
    "operation_not_found": 404,
    "method_not_allowed": 405,
    "task_exists": 409,
    "dedupe_conflict": 409,
    "queue_exclusive": 409,
    "queue_not_exclusive": 409,
    "task_leased": 409,
    "task_finished": 409,
    "lease_expired": 409,
    "lease_mismatch": 409,
    "task_not_leased": 409,
    # Nobody gets to see this one: the connection is gone. The number is the customary one in logs.
    "caller_gone": 499,
    "internal": 500,
    "unavailable": 503,
}
CODE_OF_STATUS = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}
TITLES = {499: "Client Closed Request"}
RETRY_AFTER_SECONDS = "1"


def problem(
    request_id: str, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    status = STATUS_OF_CODE[code]
    body = {
        "type": "about:blank",
        "title": TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
        **more,
    }
    return Response(msgspec.json.encode(body), status, headers, media_type="application/problem+json")


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(LeaseMQError, _answer_refusal)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_router)


def refusal(request_id: str, error: LeaseMQError) -> Response:
    if isinstance(error, Unavailable):
        headers = {"Retry-After": RETRY_AFTER_SECONDS}
        return problem(request_id, error.code, error.detail, headers=headers, applied=error.applied)
    if isinstance(error, InvalidRequest) and STATUS_OF_CODE[error.code] == HTTPStatus.UNPROCESSABLE_ENTITY:
        errors = [{"loc": list(error.location), "msg": error.detail}]
        return problem(request_id, error.code, error.detail, errors=errors)
    return problem(request_id, error.code, error.detail)


def _request_id(request: Request) -> str:
    return str(request.scope["state"]["request_id"])


async def _answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, LeaseMQError)
    return refusal(_request_id(request), error)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Only where and why: the value itself may be a payload or a secret.
    errors = [{"loc": list(problem["loc"]), "msg": _message(problem)} for problem in error.errors()]
    return problem(_request_id(request), "invalid_request", _summary(errors), errors=errors)


async def _answer_router(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = CODE_OF_STATUS.get(error.status_code, "invalid_request")
    allowed = _allowed_methods(request) if code == "method_not_allowed" else ""
    return problem(_request_id(request), code, error.detail, headers={"Allow": allowed} if allowed else error.headers)


def _allowed_methods(request: Request) -> str:
    """Those of all routes that the path has: the router tells only of the first."""
    paths: Mapping[str, Mapping[str, Any]] = request.app.openapi()["paths"]
    matching = [methods for path, methods in paths.items() if compile_path(path)[0].fullmatch(request.url.path)]
    return ", ".join(sorted({method.upper() for methods in matching for method in methods}))


def _message(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"malformed JSON: {problem['ctx']['error']}"
    return str(problem["msg"]).removeprefix("Value error, ")


def _summary(errors: Sequence[Mapping[str, Any]]) -> str:
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where}: {first['msg']}{more}"
