"""Values that a field of a kind cannot have, and the fields of every route with their kinds."""

import json
from dataclasses import dataclass
from typing import Any

from tests.api.standing import TOKEN


@dataclass(frozen=True)
class Raw:
    """JSON as text, for what Python's writer would not write."""

    text: str


NAN, INFINITY, MINUS_INFINITY = Raw("NaN"), Raw("Infinity"), Raw("-Infinity")
OVERFLOWING = Raw("1e999")
NOT_A_STRING = [7, 1.5, True, ["text"], {"text": 1}]
NOT_A_NUMBER = ["1", "", True, [1], {"n": 1}, NAN, INFINITY, MINUS_INFINITY, OVERFLOWING, Raw("-1e999")]
UNSTORABLE = ["a\x00b", "a\ud800b", "\udfff"]
NOT_IN_ALPHABET = ["", " ", "a b", "a/b", "a%2Fb", "ü", "日本", "a\n", "a+b", "a@b", ".", ".."]

KINDS: dict[str, list[Any]] = {
    "name": [*NOT_A_STRING, *UNSTORABLE, *NOT_IN_ALPHABET, "x" * 256],
    "type": [*NOT_A_STRING, *UNSTORABLE, *NOT_IN_ALPHABET[1:], "x" * 256],
    "id": [*NOT_A_STRING, *UNSTORABLE, *NOT_IN_ALPHABET, "x" * 65],
    "label": [*NOT_A_STRING, *UNSTORABLE, "", "x" * 129],
    "content_type": [*NOT_A_STRING, *UNSTORABLE, ""],
    "text": [*NOT_A_STRING, *UNSTORABLE],
    "error": NOT_A_STRING,
    "token": [*NOT_A_STRING, *UNSTORABLE, ""],
    "int32": [*NOT_A_NUMBER, 1.5, 2**31, -(2**31) - 1, Raw("9" * 400)],
    "count": [*NOT_A_NUMBER, 1.5, -1, 2**31, Raw("9" * 400)],
    "positive": [*NOT_A_NUMBER, 1.5, 0, -1],
    "seconds": [*NOT_A_NUMBER, -1, -0.001, 1e300, Raw("9" * 400)],
    "positive_seconds": [*NOT_A_NUMBER, 0, -0.0, -1, 1e300, Raw("9" * 400)],
    "lease_seconds": [*NOT_A_NUMBER, 0, -1, 43200.001, 1e300],
    "wait_seconds": [*NOT_A_NUMBER, -0.001, 30.001, 1e300],
    "factor": [*NOT_A_NUMBER, 0.999, 0, -2],
    "jitter": [*NOT_A_NUMBER, -0.001, 1.001],
    "boolean": ["true", 1, 0, [], {}],
    "object": ["{}", 7, True, [], [{}]],
    "instant": [
        *NOT_A_STRING, "", "garbage", "2100-01-01", "2100-01-01T00:00:00", "2100-01-01T00:00Z", "12:00:00Z",
        "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-01:00", "2100-02-30T00:00:00Z", "2100-02-29T00:00:00Z", "2100-13-01T00:00:00Z",
        "2100-01-01T24:00:00Z", "2100-01-01T00:60:00Z", "2016-12-31T23:59:60Z", "2100-01-01T00:00:00+24:00",
        "2100-01-01T00:00:00+0200", "2100-01-01T00:00:00.Z", "2100-01-01T00:00:00Z ", "\uff12100-01-01T00:00:00Z",
        "2100-01-01T00:00:00Z\x00", "\ud800",
    ],
    "storable_object": [
        {"k": "a\x00b"}, {"k": "\ud800"}, {"a\x00b": 1}, {"\udfff": 1}, {"k": [{"\x00": 1}]}, {"k": ["\ud800"]},
    ],
    "storable": ["a\x00b", "\ud800", ["\x00"], {"\x00": 1}, {"k": {"l": ["\udfff"]}}],
}  # fmt: skip

LEASE = {"lease_token": TOKEN}
DLQ_FILTER = {
    "queue": "name", "topic": "name", "type": "type", "reason_contains": "text", "before": "instant",
    "after": "instant",
}  # fmt: skip
REQUEUE = {"reset_attempts": "boolean", "delay_seconds": "seconds", "dry_run": "boolean"}
NACK = {
    "lease_token": "token", "error": "error", "delay_seconds": "seconds", "retry_at": "instant", "backoff": "object",
    "backoff.base_seconds": "seconds", "backoff.factor": "factor", "backoff.max_seconds": "seconds",
    "backoff.jitter": "jitter",
}  # fmt: skip
SETTLE: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "extend": ({**LEASE, "lease_seconds": 60}, {"lease_token": "token", "lease_seconds": "positive_seconds"}),
    "ack": (LEASE, {"lease_token": "token", "result": "storable"}),
    "nack": (LEASE, NACK),
    "release": (LEASE, {"lease_token": "token"}),
    "fail": ({**LEASE, "reason": "broken"}, {"lease_token": "token", "reason": "error"}),
}

# A good body of each route, and the kinds of its fields.
ROUTES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "POST /v1/tasks": (
        {"queue": "work", "payload": 1},
        {
            "queue": "name", "payload_base64": "text", "content_type": "content_type", "type": "type",
            "meta": "storable_object", "priority": "int32", "dedupe_key": "label", "dedupe_seconds": "seconds",
            "max_attempts": "count", "delay_seconds": "seconds", "available_at": "instant",
            "ttl_seconds": "positive_seconds", "expires_at": "instant", "timeout_seconds": "seconds", "id": "id",
        },
    ),
    "POST /v1/reserve": (
        {"queues": ["work"]},
        {
            "queues[]": "name", "limit": "positive", "lease_seconds": "lease_seconds", "wait_seconds": "wait_seconds",
            "types[]": "type", "exclude_ids[]": "id", "worker_id": "label",
        },
    ),
    "PATCH /v1/tasks/ready": (
        {"priority": 1},
        {"priority": "int32", "available_at": "instant", "max_attempts": "count", "expires_at": "instant"},
    ),
    **{f"POST /v1/tasks/leased/{verb}": route for verb, route in SETTLE.items()},
    "POST /v1/dlq/dead/requeue": ({}, REQUEUE),
    "POST /v1/dlq/requeue": ({}, {**DLQ_FILTER, **REQUEUE, "ids[]": "id", "limit": "positive"}),
    "POST /v1/dlq/purge": ({}, {**DLQ_FILTER, "dry_run": "boolean"}),
}  # fmt: skip


def write(value: Any) -> str:
    """JSON with lone surrogates as escapes and the raw pieces as they are."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{write(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write(item) for item in value) + "]"
    return json.dumps(value)


def with_field(body: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """The body with a bad value in a field, inside a list (`queues[]`) or an object (`backoff.factor`)."""
    if field.endswith("[]"):
        return {**body, field[:-2]: [value]}
    if "." in field:
        outer, inner = field.split(".")
        return {**body, outer: {inner: value}}
    if field == "payload_base64":
        return {**{name: item for name, item in body.items() if name != "payload"}, field: value}
    return {**body, field: value}


def batch_of(route: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The batch form of a route and body, where there is one, behind an item that is good."""
    good = {"queue": "work", "payload": None}
    if route == "POST /v1/tasks":
        return "POST /v1/tasks/batch", {"tasks": [good, body]}
    if route.startswith("POST /v1/tasks/leased/"):
        verb = route.rpartition("/")[2]
        item = {"id": "leased", **SETTLE[verb][0]}
        return f"POST /v1/tasks/{verb}", {"items": [item, {"id": "leased", **body}]}
    return None
