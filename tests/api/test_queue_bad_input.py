"""Requests about queues and topics that make no sense: refused with the right code, and nothing of them applied."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.api.caller import Json, new_tenant
from tests.api.checking import refused
from tests.service import Service
from tests.waiting.topology import TopologyCaller, connect

INVALID = (422, "invalid_request")
NOT_A_NUMBER = ['"1"', '""', "true", "[1]", "{}", "NaN", "Infinity", "-Infinity", "1e999", "-1e999"]
HUGE = ["1e300", "9" * 400, "9" * 5000]
SECONDS = [*NOT_A_NUMBER, *HUGE, "-1", "-0.001"]
POSITIVE = [*SECONDS, "0", "-0.0"]
COUNT = [*NOT_A_NUMBER, *HUGE, "-1", "1.5", "2147483648"]
BOOLEAN = ['"true"', "1", "0", "[]", "{}"]
NAME = ["7", "true", "[]", '""', '"a b"', '"a/b"', '"ü"', '"."', '".."', '"a\\u0000"', '"\\ud800"', f'"{"x" * 256}"']

# JSON that a field cannot have.
FIELDS: dict[str, list[str]] = {
    "topic": NAME,
    "exclusive": BOOLEAN,
    "keep_alive_seconds": POSITIVE,
    "max_attempts": COUNT,
    "lease_seconds": [*POSITIVE, "43200.5"],
    "max_lease_seconds": POSITIVE,
    "backoff": ['"{}"', "7", "true", "[]", '{"unknown": 1}', '{"Factor": 2}', '{"backoff": {}}'],
    "backoff.base_seconds": SECONDS,
    "backoff.factor": [*NOT_A_NUMBER, "0.999", "0", "-2", "9" * 400],
    "backoff.max_seconds": SECONDS,
    "backoff.jitter": [*NOT_A_NUMBER, *HUGE, "-0.001", "1.001"],
    "rate_per_second": POSITIVE,
    "concurrency_limit": [*COUNT, "0"],
    "paused": BOOLEAN,
    "history_days": SECONDS,
    "dlq_days": SECONDS,
    "surprise": ["1", "null"],
    "name": ['"work"'],
    "max_attempt": ["5"],
    "created_at": ['"2020-01-01T00:00:00Z"'],
    "keep_alive_until": ["null", '"2100-01-01T00:00:00Z"'],
}
NAMES_OUTSIDE = ["a b", "ü", "日本", "a%", "a+b", "a@b", "a\n", "x" * 256, "a\x00", "a,b", "{a}"]


@pytest.fixture(scope="module")
def shared(server: Service) -> Iterator[TopologyCaller]:
    """A tenant with a declared queue, a topic and a task."""
    with connect(server, new_tenant()) as client:
        api = TopologyCaller(client)
        api.put_topic("news", "subscribed")
        api.put_queue("work", lease_seconds=30, rate_per_second=5, paused=True)
        api.put_queue("mine", exclusive=True, keep_alive_seconds=36000)
        api.enqueue(id="waiting")
        yield api


def everything(api: TopologyCaller) -> Json:
    lists = {path: list(api.pages(path)) for path in ("/v1/queues", "/v1/topics", "/v1/tasks", "/v1/dlq")}
    return {**lists, "stats": [api.stats(queue)["ready"] for queue in ("work", "subscribed")]}


@pytest.fixture
def api(shared: TopologyCaller) -> Iterator[TopologyCaller]:
    """The tenant, which must be the same after the test."""
    before = everything(shared)
    yield shared
    assert everything(shared) == before


def send(api: TopologyCaller, route: str, content: str) -> httpx.Response:
    method, path = route.split()
    return api.client.request(method, path, content=content, headers={"Content-Type": "application/json"})


def body_of(field: str, value: str) -> str:
    outer, _, inner = field.partition(".")
    return f'{{"{outer}": {{"{inner}": {value}}}}}' if inner else f'{{"{outer}": {value}}}'


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("route", ["PUT /v1/queues/work", "PATCH /v1/queues/work", "PUT /v1/queues/new"])
def test_bad_settings(api: TopologyCaller, route: str, field: str) -> None:
    for value in FIELDS[field]:
        response = send(api, route, body_of(field, value))
        assert (value, *refused(response)) == (value, *INVALID)
        loc = response.json()["errors"][0]["loc"]
        assert (value, loc[0]) == (value, "body")


def test_one_bad_setting_among_good_ones(api: TopologyCaller) -> None:
    body = '{"max_attempts": 9, "backoff": {"base_seconds": 1, "factor": 0.5}, "paused": false}'
    for method in ("PUT", "PATCH"):
        assert refused(send(api, f"{method} /v1/queues/work", body)) == INVALID


def test_the_lease_is_over_the_longest(api: TopologyCaller) -> None:
    body = '{"lease_seconds": 10, "max_lease_seconds": 9.5}'
    for route in ("PUT /v1/queues/work", "PATCH /v1/queues/work", "PUT /v1/queues/new"):
        response = send(api, route, body)
        assert refused(response) == INVALID
        assert response.json()["errors"][0]["loc"] == ["body", "lease_seconds"]


def test_an_unknown_field_is_named(api: TopologyCaller) -> None:
    response = send(api, "PUT /v1/queues/work", '{"backoff": {"base": 1}}')
    assert response.json()["errors"][0]["loc"] == ["body", "backoff", "base"]


BODIES: dict[str, list[str]] = {
    "POST /v1/queues/mine/keep-alive": [
        "{}", '{"seconds": null}', '{"seconds": 5, "more": 1}', '{"keep_alive_seconds": 5}',
        *(f'{{"seconds": {value}}}' for value in POSITIVE),
    ],
    "POST /v1/queues/work/cleanup": [
        '{"older_than": 5}', *(f'{{"older_than_seconds": {value}}}' for value in SECONDS),
    ],
    "POST /v1/topics/news/cleanup": [
        '{"older_than": 5}', *(f'{{"older_than_seconds": {value}}}' for value in SECONDS),
    ],
    "PUT /v1/topics/new": ['{"name": "new"}', '{"surprise": 1}'],
    "POST /v1/topics/news/publish": [
        "{}", '{"payload": 1, "queue": "work"}', '{"payload": 1, "queue": null}', '{"payload": 1, "id": "mine"}',
        '{"payload": 1, "topic": "news"}', '{"payload": 1, "publish_id": "x"}', '{"payload": 1, "tasks": []}',
        '{"payload": 1, "payload_base64": "AA=="}', '{"payload_base64": "not base64"}', '{"payload": NaN}',
        '{"payload": 1, "priority": 2147483648}', '{"payload": 1, "priority": "1"}', '{"payload": 1, "meta": []}',
        '{"payload": 1, "delay_seconds": -1}', '{"payload": 1, "delay_seconds": 1e999}',
        '{"payload": 1, "delay_seconds": 1, "available_at": "2100-01-01T00:00:00Z"}',
        '{"payload": 1, "ttl_seconds": 0}', '{"payload": 1, "max_attempts": -1}', '{"payload": 1, "dedupe_key": ""}',
    ],
}  # fmt: skip
NOT_JSON = ["{", "[]", "7", '"text"', "nul", '{"a": 1}}', "\x00", "{'a': 1}"]


@pytest.mark.parametrize("route", BODIES)
def test_bad_bodies(api: TopologyCaller, route: str) -> None:
    for body in BODIES[route]:
        assert (body, *refused(send(api, route, body))) == (body, *INVALID)


ROUTES = ["PUT /v1/queues/work", "PATCH /v1/queues/work", *BODIES]


@pytest.mark.parametrize("route", ROUTES)
def test_malformed_json(api: TopologyCaller, route: str) -> None:
    for body in NOT_JSON:
        assert (body, *refused(send(api, route, body))) == (body, *INVALID)


@pytest.mark.parametrize("route", ROUTES)
def test_other_media_types(api: TopologyCaller, route: str) -> None:
    method, path = route.split()
    for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}, {}):
        response = api.client.request(method, path, content=b'{"surprise": 1}', headers=headers)
        assert refused(response) == (415, "unsupported_media_type")


BODILESS = [
    "POST /v1/queues/q/purge", "POST /v1/queues/q/pause", "POST /v1/queues/q/resume", "DELETE /v1/queues/q",
    "DELETE /v1/topics/t", "DELETE /v1/tasks/task", "DELETE /v1/dlq/dead", "DELETE /v1/operations/operation",
]  # fmt: skip


@pytest.mark.parametrize("route", BODILESS)
def test_bodies_where_there_is_nothing_to_say(api: TopologyCaller, route: str) -> None:
    method, path = route.split()
    for body in (b'{"dry_run": true}', b"[1]", b"{", b"7"):
        assert (body, *refused(send(api, route, body.decode()))) == (body, *INVALID)
        response = api.client.request(method, path, content=body, headers={"Content-Type": "text/plain"})
        assert refused(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize("body", ["", "{}", "null", " "])
def test_bodies_that_say_nothing(api: TopologyCaller, body: str) -> None:
    assert send(api, "POST /v1/queues/subscribed/purge", body).json() == {"purged": 0}


PATHS: list[tuple[str, str, Any]] = [
    ("PUT", "/v1/queues/{}", {}),
    ("PATCH", "/v1/queues/{}", {}),
    ("GET", "/v1/queues/{}", None),
    ("DELETE", "/v1/queues/{}", None),
    ("POST", "/v1/queues/{}/pause", None),
    ("POST", "/v1/queues/{}/resume", None),
    ("POST", "/v1/queues/{}/purge", None),
    ("POST", "/v1/queues/{}/cleanup", None),
    ("POST", "/v1/queues/{}/keep-alive", {"seconds": 5}),
    ("GET", "/v1/queues/{}/stats", None),
    ("PUT", "/v1/topics/{}", {}),
    ("GET", "/v1/topics/{}", None),
    ("DELETE", "/v1/topics/{}", None),
    ("POST", "/v1/topics/{}/publish", {"payload": 1}),
    ("POST", "/v1/topics/{}/cleanup", None),
    ("GET", "/v1/operations/{}", None),
    ("DELETE", "/v1/operations/{}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), PATHS, ids=[f"{method} {path}" for method, path, _ in PATHS])
def test_names_outside_the_alphabet(api: TopologyCaller, method: str, path: str, body: Any) -> None:
    for name in NAMES_OUTSIDE:
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        response = api.client.request(method, path.format(quote(name, safe="")), content=content, headers=headers)
        assert (name, *refused(response)) == (name, *INVALID)


@pytest.mark.parametrize("path", ["/v1/queues", "/v1/topics"])
def test_bad_parameters_of_lists(api: TopologyCaller, path: str) -> None:
    bad = ["limit=0", "limit=501", "limit=-1", "limit=x", "limit=1.5", "cursor=garbage", "surprise=1", "offset=5"]
    for query in bad:
        assert (query, *refused(api.client.get(f"{path}?{query}"))) == (query, *INVALID)


def test_cursors_of_other_lists(api: TopologyCaller) -> None:
    queues = api.get("/v1/queues", limit=1)["next_cursor"]
    assert refused(api.client.get("/v1/tasks", params={"cursor": queues})) == INVALID
    assert refused(api.client.get("/v1/queues", params={"cursor": queues[:-3]})) == INVALID


def test_topics_that_are_not_there(api: TopologyCaller) -> None:
    for route in ("PUT /v1/queues/work", "PATCH /v1/queues/work", "PUT /v1/queues/new"):
        response = send(api, route, '{"topic": "none", "max_attempts": 9}')
        assert refused(response) == (404, "topic_not_found")
    assert refused(send(api, "POST /v1/topics/none/publish", '{"payload": 1}')) == (404, "topic_not_found")


def test_too_much(api: TopologyCaller) -> None:
    large = json.dumps({"payload": "x" * (256 * 1024)})
    assert refused(send(api, "POST /v1/topics/news/publish", large)) == (413, "payload_too_large")


def test_methods_that_are_not_there(api: TopologyCaller) -> None:
    for method, path in [
        ("POST", "/v1/queues"), ("POST", "/v1/queues/work"), ("GET", "/v1/queues/work/purge"),
        ("PATCH", "/v1/topics/news"), ("GET", "/v1/topics/news/publish"), ("POST", "/v1/operations/x"),
        ("DELETE", "/v1/queues"), ("DELETE", "/v1/queues/work/stats"),
    ]:  # fmt: skip
        response = api.client.request(method, path)
        assert (method, path, *refused(response)) == (method, path, 405, "method_not_allowed")
