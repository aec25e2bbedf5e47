"""Requests that make no sense: refused with the right status and code, and nothing of them applied."""

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.api.bad_values import KINDS, NOT_IN_ALPHABET, ROUTES, batch_of, with_field, write
from tests.api.caller import Caller, Json, connect, new_tenant
from tests.api.checking import refused
from tests.api.standing import TOKEN, Standing
from tests.service import Service

JSON = {"Content-Type": "application/json"}
INVALID = (422, "invalid_request")


@pytest.fixture(scope="module")
def shared_standing(server: Service) -> Iterator[Standing]:
    with connect(server, new_tenant()) as client:
        yield Standing(Caller(client))


@pytest.fixture
def standing(shared_standing: Standing) -> Iterator[Standing]:
    """A tenant with tasks in all states, which must be the same after the test."""
    yield shared_standing
    shared_standing.check_unchanged()


def send(standing: Standing, route: str, content: str | bytes, **headers: str) -> httpx.Response:
    method, path = route.split()
    text = standing.content(content) if isinstance(content, str) else content
    return standing.api.client.request(method, path, content=text, headers={**JSON, **headers})


FIELDS = [(route, field) for route, (_, kinds) in ROUTES.items() for field in kinds]


# What a field may hold is decided before any database is asked: one will do.
@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("route", "field"), FIELDS, ids=[f"{route}-{field}" for route, field in FIELDS])
def test_bad_values(standing: Standing, route: str, field: str) -> None:
    good, kinds = ROUTES[route]
    for value in KINDS[kinds[field]]:
        body = with_field(good, field, value)
        response = send(standing, route, write(body))
        assert (value, *refused(response)) == (value, *INVALID)
        assert response.json()["errors"][0]["loc"][0] == "body"
        batch = batch_of(route, body)
        if batch is not None:
            assert (value, *refused(send(standing, batch[0], write(batch[1])))) == (value, *INVALID)


@pytest.mark.parametrize("route", ROUTES)
def test_unknown_fields(standing: Standing, route: str) -> None:
    for unknown in ("surprise", "Queue", "", "lease_token ", "payload ", "\ud800"):
        body = {**ROUTES[route][0], unknown: 1}
        assert (unknown, *refused(send(standing, route, write(body)))) == (unknown, *INVALID)
        batch = batch_of(route, body)
        if batch is not None:
            assert (unknown, *refused(send(standing, batch[0], write(batch[1])))) == (unknown, *INVALID)


@pytest.mark.parametrize("route", ROUTES)
def test_unknown_field_is_named(standing: Standing, route: str) -> None:
    response = send(standing, route, write({**ROUTES[route][0], "surprise": 1}))
    assert response.json()["errors"][0]["loc"] == ["body", "surprise"]


@pytest.mark.parametrize("field", ["priority", "delay_seconds", "timeout_seconds"])
def test_number_of_very_many_digits(standing: Standing, field: str) -> None:
    content = f'{{"queue":"work","payload":1,"{field}":{"9" * 5000}}}'
    assert refused(send(standing, "POST /v1/tasks", content)) == INVALID


def test_unknown_fields_of_batches_and_nested_objects(standing: Standing) -> None:
    lease = {"id": "leased", "lease_token": TOKEN}
    for route, body in (
        ("POST /v1/tasks/batch", {"tasks": [{"queue": "work", "payload": 1}], "surprise": 1}),
        ("POST /v1/tasks/ack", {"items": [lease], "surprise": 1}),
        ("POST /v1/tasks/leased/nack", {"lease_token": TOKEN, "backoff": {"surprise": 1}}),
        ("POST /v1/tasks/nack", {"items": [{**lease, "backoff": {"jitter": 0, "base": 1}}]}),
        ("POST /v1/tasks/leased/ack", {**lease, "lease_token": TOKEN}),
    ):
        assert refused(send(standing, route, write(body))) == INVALID


@pytest.mark.parametrize("route", ROUTES)
def test_missing_fields(standing: Standing, route: str) -> None:
    good = ROUTES[route][0]
    for name in good if "PATCH" not in route else ():
        missing = {other: value for other, value in good.items() if other != name}
        for body in (missing, {**missing, name: None}) if name != "payload" else (missing,):
            assert refused(send(standing, route, write(body))) == INVALID


MALFORMED: dict[str, str | bytes] = {
    "empty": "",
    "blank": " \n",
    "word": "garbage",
    "truncated": '{"queue":"work","payload":[1,',
    "truncated-string": '{"queue":"wo',
    "truncated-escape": '{"queue":"work","payload":"\\u00',
    "trailing-garbage": '{"queue":"work","payload":1} x',
    "trailing-comma": '{"queue":"work","payload":1,}',
    "two-values": '{"queue":"work","payload":1}{"queue":"work","payload":2}',
    "no-comma": '{"queue":"work" "payload":1}',
    "single-quotes": "{'queue':'work','payload':1}",
    "comment": '{"queue":"work","payload":1/* */}',
    "payload-nan": '{"queue":"work","payload":NaN}',
    "payload-infinity": '{"queue":"work","payload":[Infinity]}',
    "payload-minus-infinity": '{"queue":"work","payload":{"n":-Infinity}}',
    "payload-nan-and-surrogate": '{"queue":"work","payload":["\\ud800",NaN]}',
    "meta-nan": '{"queue":"work","payload":1,"meta":{"n":NaN}}',
    "leading-zero": '{"queue":"work","payload":01}',
    "plus": '{"queue":"work","payload":+1}',
    "bare-fraction": '{"queue":"work","payload":.5}',
    "control-character": '{"queue":"work","payload":"\n"}',
    "raw-nul": b'{"queue":"work","payload":"\x00"}',
    "bad-escape": '{"queue":"work","payload":"\\x41"}',
    "capital-true": '{"queue":"work","payload":True}',
    "unclosed-payload": '{"queue":"work","payload":[1}',
    "key-without-value": '{"queue":"work","payload"}',
    "number-key": '{"queue":"work",1:2,"payload":1}',
    "top-level-array": '[{"queue":"work","payload":1}]',
    "top-level-string": '"queue"',
    "top-level-number": "7",
    "top-level-null": "null",
    "top-level-true": "true",
    "invalid-utf8": b'{"queue":"work","payload":"\xff\xfe"}',
    "overlong-utf8": b'{"queue":"work","payload":"\xc0\x80"}',
    "utf8-surrogate": b'{"queue":"work","payload":"\xed\xa0\x80"}',
    "utf8-cut": b'{"queue":"work","payload":"\xc3',
    "utf16": '{"queue":"work","payload":1}'.encode("utf-16"),
    "byte-order-mark-alone": b"\xef\xbb\xbf",
    "deep-arrays": "[" * 100_000,
    "deep-objects": '{"a":' * 100_000,
    "deep-payload": '{"queue":"work","payload":' + "[" * 100_000,
    "deep-balanced-priority": '{"queue":"work","payload":1,"priority":' + "[" * 50_000 + "]" * 50_000 + "}",
    "deep-meta": '{"queue":"work","payload":1,"meta":{"m":' + "[" * 5_000 + "]" * 5_000 + "}}",
    "deep-meta-with-escape": '{"queue":"work","payload":1,"meta":{"\\u0041":' + "[" * 5_000 + "]" * 5_000 + "}}",
    "deep-tasks": '{"tasks":' + "[" * 100_000,
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_malformed_json(standing: Standing, content: str | bytes) -> None:
    for path in ("/v1/tasks", "/v1/tasks/batch"):
        assert refused(send(standing, f"POST {path}", content)) == INVALID


@pytest.mark.parametrize("depth", [100, 500, 800, 900, 930, 960, 990])
def test_deep_nesting_is_taken_or_refused_but_never_a_failure(standing: Standing, api: Caller, depth: int) -> None:
    deep = '{"\\u0041":' * depth + "1" + "}" * depth
    task = api.lease()
    ack = f'{{"lease_token":"{task["lease_token"]}","result":{deep}}}'
    for path, content in (
        ("/v1/tasks", f'{{"queue":"work","payload":1,"meta":{deep}}}'),
        ("/v1/tasks", f'{{"queue":"work","payload":{deep}}}'),
        ("/v1/tasks", f'{{"queue":"work","payload":["\\ud800",{deep}]}}'),
        (f"/v1/tasks/{task['id']}/ack", ack),
    ):
        response = api.client.post(path, content=content, headers=JSON)
        assert response.is_success or (response.status_code, response.json()["code"]) == INVALID, response.text


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_reads_strictly(standing: Standing, route: str) -> None:
    for content in ("{", "[]", '"x"', "7", '{"a":NaN}', '{"a":1}x', b'{"\xff":1}'):
        assert (content, *refused(send(standing, route, content))) == (content, *INVALID)


CONTRADICTIONS: dict[str, tuple[str, Json]] = {
    "payload-twice": ("POST /v1/tasks", {"queue": "work", "payload": 1, "payload_base64": "AQI="}),
    "null-payload-and-bytes": ("POST /v1/tasks", {"queue": "work", "payload": None, "payload_base64": "AQI="}),
    "no-payload": ("POST /v1/tasks", {"queue": "work"}),
    "no-payload-at-all": ("POST /v1/tasks", {"queue": "work", "payload_base64": None}),
    "two-starts": (
        "POST /v1/tasks",
        {"queue": "work", "payload": 1, "delay_seconds": 0, "available_at": "2100-01-01T00:00:00Z"},
    ),
    "two-ends": (
        "POST /v1/tasks",
        {"queue": "work", "payload": 1, "ttl_seconds": 9, "expires_at": "2100-01-01T00:00:00Z"},
    ),
    "nack-delay-and-instant": (
        "POST /v1/tasks/leased/nack",
        {"lease_token": TOKEN, "delay_seconds": 1, "retry_at": "2100-01-01T00:00:00Z"},
    ),
    "nack-delay-and-backoff": (
        "POST /v1/tasks/leased/nack",
        {"lease_token": TOKEN, "delay_seconds": 1, "backoff": {"jitter": 0}},
    ),
    "nack-instant-and-backoff": (
        "POST /v1/tasks/leased/nack",
        {"lease_token": TOKEN, "retry_at": "2100-01-01T00:00:00Z", "backoff": {"jitter": 0}},
    ),
    "no-queues": ("POST /v1/reserve", {"queues": []}),
    "too-many-queues": ("POST /v1/reserve", {"queues": ["work"] * 101}),
    "queues-not-a-list": ("POST /v1/reserve", {"queues": "work"}),
    "limit-too-high": ("POST /v1/reserve", {"queues": ["work"], "limit": 1001}),
    "too-many-excluded": ("POST /v1/reserve", {"queues": ["work"], "exclude_ids": ["x"] * 1001}),
    "types-not-a-list": ("POST /v1/reserve", {"queues": ["work"], "types": "t"}),
    "tasks-not-a-list": ("POST /v1/tasks/batch", {"tasks": {"queue": "work", "payload": 1}}),
    "task-not-an-object": ("POST /v1/tasks/batch", {"tasks": [{"queue": "work", "payload": 1}, "task"]}),
    "items-not-a-list": ("POST /v1/tasks/ack", {"items": {"id": "leased", "lease_token": TOKEN}}),
    "item-not-an-object": ("POST /v1/tasks/ack", {"items": [{"id": "leased", "lease_token": TOKEN}, None]}),
    "meta-an-array": ("POST /v1/tasks", {"queue": "work", "payload": 1, "meta": []}),
    "meta-a-string": ("POST /v1/tasks", {"queue": "work", "payload": 1, "meta": "{}"}),
    "ids-not-a-list": ("POST /v1/dlq/requeue", {"ids": "dead"}),
    "requeue-limit-zero": ("POST /v1/dlq/requeue", {"limit": 0}),
}


@pytest.mark.parametrize(("route", "body"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions(standing: Standing, route: str, body: Json) -> None:
    assert refused(send(standing, route, write(body))) == INVALID


TYPES = [
    None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json",
    "application/jsonx", "application/problem+json", "application/json; charset=utf-16", "application",
]  # fmt: skip


@pytest.mark.parametrize("content_type", TYPES, ids=str)
def test_other_content_types(standing: Standing, content_type: str | None) -> None:
    for route, (body, _) in ROUTES.items():
        method, path = route.split()
        headers = {} if content_type is None else {"Content-Type": content_type}
        content = standing.content(write({**body, "dry_run": True} if "dlq" in path else body))
        response = standing.api.client.request(method, path, content=content, headers=headers)
        assert refused(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        'application/json; version=1; charset="utf-8"',
    ],
)
def test_json_content_types(api: Caller, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    response = api.client.post("/v1/tasks", content='{"queue":"work","payload":"ü"}'.encode(), headers=headers)
    assert response.status_code == 201


@pytest.mark.parametrize("bad", [*NOT_IN_ALPHABET[1:], "x" * 65, "a\x00", "\ud800"], ids=ascii)
def test_bad_ids_in_paths(standing: Standing, bad: str) -> None:
    name = quote(bad, safe="", errors="surrogatepass").replace(".", "%2E")
    lease = {"lease_token": TOKEN}
    for method, path, body in (
        ("GET", f"/v1/tasks/{name}", None),
        ("PATCH", f"/v1/tasks/{name}", {"priority": 1}),
        ("DELETE", f"/v1/tasks/{name}", None),
        ("GET", f"/v1/tasks/{name}/attempts", None),
        ("POST", f"/v1/tasks/{name}/ack", lease),
        ("GET", f"/v1/dlq/{name}", None),
        ("DELETE", f"/v1/dlq/{name}", None),
        ("POST", f"/v1/dlq/{name}/requeue", {}),
    ):
        response = standing.api.client.request(method, path, json=standing.body(body))
        # A slash, encoded or not, parts a path, which then is another or none.
        assert response.status_code in ({404, 405, 422} if "/" in bad or bad in {".", ".."} else {422}), response.text


QUERIES: list[dict[str, Any]] = [
    *({"limit": value} for value in (0, -1, 501, "many", "1.5", "", "1e2", "9" * 30)),
    *({"queue": value} for value in ("a b", "ü", "x" * 256, "..", "a\x00b")),
    *({"type": value} for value in ("a b", "x" * 256)),
    *({"topic": value} for value in ("a/b", "x" * 256)),
    {"surprise": "1"},
    {"Queue": "work"},
    {"cursor": "garbage"},
    {"cursor": "AAAA"},
    {"cursor": "ü"},
    {"cursor": "x" * 5000},
    {"cursor": "a\x00"},
]  # fmt: skip


def _cursor(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


OTHER_JSON: list[object] = [
    None, 1, "text", [], {}, {"seq": "1"}, {"seq": -1}, {"seq": 2**63}, {"seq": 1.5}, {"seq": None},
    {"finished_at": "2020-01-01T00:00:00", "id": 1}, {"finished_at": "0001-01-01T00:00:00Z", "id": 1},
    {"finished_at": "garbage", "id": 1}, {"finished_at": "2020-01-01T00:00:00Z", "id": -1},
    {"finished_at": "2020-01-01T00:00:00Z"}, {"started_at": 7, "id": 1},
]  # fmt: skip
# In a list, with the name of the list before them.
OTHER_JSON += [
    [name, value]
    for name in ("live", "done", "dlq", "attempts of ready")
    for value in (*OTHER_JSON, {"finished_at": "9999-12-31T23:59:59.999999-12:00", "id": 1})
]
LISTS = ["/v1/tasks", "/v1/tasks?status=done", "/v1/dlq", "/v1/tasks/ready/attempts"]


@pytest.mark.parametrize("path", LISTS)
def test_bad_queries(standing: Standing, path: str) -> None:
    for query in QUERIES:
        response = standing.api.client.get(httpx.URL(path).copy_merge_params(query))
        assert (query, *refused(response)) == (query, *INVALID)
        assert response.json()["errors"][0]["loc"][0] == "query"


@pytest.mark.parametrize("path", LISTS)
def test_cursors_of_other_json(standing: Standing, path: str) -> None:
    for value in OTHER_JSON:
        response = standing.api.client.get(httpx.URL(path).copy_merge_params({"cursor": _cursor(value)}))
        assert (value, response.status_code, response.json()["code"]) == (value, *INVALID)


@pytest.mark.parametrize("path", LISTS)
def test_cursors_of_other_lists(standing: Standing, path: str, api: Caller) -> None:
    task = api.lease(id="task", max_attempts=0)
    api.settle("nack", task, delay_seconds=0)
    api.reserve()
    api.enqueue()
    for _ in range(2):
        api.settle("ack", api.lease(queue="done"))
        api.die(queue="dead")
    lists = ["/v1/tasks", "/v1/tasks?status=done", "/v1/dlq", "/v1/tasks/task/attempts"]
    for number, other in enumerate(lists):
        cursor = api.get(str(httpx.URL(other).copy_merge_params({"limit": 1})))["next_cursor"]
        assert cursor is not None
        if number != LISTS.index(path):
            response = standing.api.client.get(httpx.URL(path).copy_merge_params({"cursor": cursor}))
            assert refused(response) == INVALID


@pytest.mark.parametrize(
    "query",
    [
        "/v1/tasks?status=Ready",
        "/v1/tasks?status=running",
        "/v1/tasks?limit=1&limit=x",
        "/v1/tasks?queue=%ff",
        "/v1/dlq?before=2020-01-01",
        "/v1/dlq?after=2020-02-30T00:00:00Z",
        "/v1/dlq?before=2020-01-01T00:00:00",
        "/v1/dlq?reason_contains=%00",
        "/v1/dlq?status=dead",
    ],
)
def test_more_bad_queries(standing: Standing, query: str) -> None:
    assert refused(standing.api.client.get(query)) == INVALID


@pytest.mark.parametrize("force", ["maybe", "2", ""])
def test_bad_force(standing: Standing, force: str) -> None:
    assert refused(standing.api.client.delete(f"/v1/tasks/ready?force={force}")) == INVALID


@pytest.mark.parametrize("tenant", ["", "a b", "a/b", "ü", "x" * 65, ".", "..", "a,b"], ids=ascii)
def test_bad_tenants(standing: Standing, tenant: str) -> None:
    for method, path, body in (
        ("GET", "/v1/tasks", None),
        ("POST", "/v1/tasks", {"queue": "work", "payload": 1}),
        ("POST", "/v1/reserve", {"queues": ["work"]}),
        ("DELETE", "/v1/tasks/ready", None),
        ("POST", "/v1/dlq/purge", {}),
    ):
        headers = {b"X-Tenant-Id": tenant.encode()}
        response = standing.api.client.request(method, path, json=body, headers=headers)
        assert refused(response) == INVALID


UNKNOWN_PATHS = ["/", "/v1", "/v2/tasks", "/v1/tasks/", "/v1/dlq/", "/v1/tasks/a/b/c", "/V1/tasks", "/v1//tasks"]


@pytest.mark.parametrize("path", UNKNOWN_PATHS)
def test_unknown_routes(standing: Standing, path: str) -> None:
    for method in ("GET", "POST"):
        response = standing.api.client.request(method, path, json={})
        assert refused(response) == (404, "not_found")


WRONG_METHODS = [
    ("PUT", "/v1/tasks", {"GET", "POST"}),
    ("DELETE", "/v1/tasks", {"GET", "POST"}),
    ("GET", "/v1/reserve", {"POST"}),
    ("PUT", "/v1/tasks/ready", {"GET", "PATCH", "DELETE"}),
    ("GET", "/v1/tasks/ready/ack", {"POST"}),
    ("POST", "/v1/tasks/ready/attempts", {"GET"}),
    ("POST", "/v1/dlq", {"GET"}),
    ("PATCH", "/v1/dlq/dead", {"GET", "DELETE"}),
    ("GET", "/v1/dlq/dead/requeue", {"POST"}),
    ("POST", "/healthz", {"GET"}),
    ("DELETE", "/metrics", {"GET"}),
]


@pytest.mark.parametrize(
    ("method", "path", "allowed"), WRONG_METHODS, ids=[f"{method} {path}" for method, path, _ in WRONG_METHODS]
)
def test_wrong_methods(standing: Standing, method: str, path: str, allowed: set[str]) -> None:
    response = standing.api.client.request(method, path)
    assert refused(response) == (405, "method_not_allowed")
    told = {name.strip() for name in response.headers["Allow"].split(",")}
    assert told == allowed
