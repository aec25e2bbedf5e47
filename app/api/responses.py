"""JSON responses, and how the OpenAPI document tells of refusals."""

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import Response

from app.api.errors import STATUS_OF_CODE
from app.api.replies import Problem

JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode
NO_HEADERS: Mapping[str, str] = {}


class JsonResponse(Response):
    """A response whose few headers are written down directly: it is made for every call."""

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.body = body
        self.status_code = status
        self.background = None
        self.raw_headers = [JSON, (b"content-length", b"%d" % len(body))]
        for name, value in headers.items():
            self.raw_headers.append((name.lower().encode(), value.encode()))


def json_response(content: object, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    return JsonResponse(_encode(content), status, headers)


def refuses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """What a route answers when it refuses, beside what every route may answer."""
    told: dict[int, list[str]] = {}
    for code in (*codes, "invalid_request", "unavailable"):
        told.setdefault(STATUS_OF_CODE[code], []).append(f"`{code}`")
    content = {"application/problem+json": {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    return {status: {"description": ", ".join(names), "content": content} for status, names in sorted(told.items())}
