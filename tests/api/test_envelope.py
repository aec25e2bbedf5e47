"""What surrounds every request: its id, and the host names that the server answers to."""

import time

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, connect
from tests.api.checking import check_problem, refused
from tests.api.conftest import StartService
from tests.service import Service

GIVEN = ["a", "x" * 128, "order 7/ü".replace("ü", "u"), "!#~ {}", "0"]
REPLACED = ["", "x" * 129, "tab\there", "ü"]


@pytest.mark.parametrize("request_id", GIVEN)
def test_request_id_is_taken_and_returned(client: httpx.Client, request_id: str) -> None:
    headers = {"X-Request-Id": request_id}
    assert client.get("/healthz", headers=headers).headers["X-Request-Id"] == request_id
    assert client.get("/v1/tasks", headers=headers).headers["X-Request-Id"] == request_id
    for response in (
        client.get("/v1/tasks/none", headers=headers),
        client.get("/nowhere", headers=headers),
        client.put("/v1/tasks", headers=headers),
        client.post("/v1/tasks", json={}, headers=headers),
        client.post("/v1/tasks", content="{}", headers=headers),
        client.post("/v1/tasks", content=b" " * (8 * 1024 * 1024 + 1), headers=headers),
        client.get("/v1/tasks", headers={**headers, "Host": "example.com"}),
    ):
        assert response.is_error
        assert (response.headers["X-Request-Id"], response.json()["request_id"]) == (request_id, request_id)


@pytest.mark.parametrize("request_id", REPLACED, ids=ascii)
def test_request_id_that_cannot_be_is_replaced(client: httpx.Client, request_id: str) -> None:
    responses = [client.get("/v1/tasks/none", headers={b"X-Request-Id": request_id.encode()}) for _ in range(2)]
    made = {response.headers["X-Request-Id"] for response in responses}
    assert len(made) == 2
    assert all(1 <= len(text) <= 128 and text.isascii() and text.isprintable() for text in made)
    assert made == {response.json()["request_id"] for response in responses}


def test_request_id_is_made(client: httpx.Client) -> None:
    assert len({client.get("/healthz").headers["X-Request-Id"] for _ in range(3)}) == 3


def test_request_id_is_logged(client: httpx.Client, server: Service) -> None:
    client.get("/v1/tasks", headers={"X-Request-Id": "the-id-of-a-request"})
    client.get("/v1/tasks/none", headers={"X-Request-Id": "the-id-of-a-refused-request"})
    for request_id in ("the-id-of-a-request", "the-id-of-a-refused-request"):
        assert _lines_with(server, request_id)


HOSTS = ["localhost", "LOCALHOST:8080", "queue.localhost", "127.0.0.1", "127.1.2.3:1", "[::1]", "[::1]:9", "localhost."]
FOREIGN = [
    "example.com", "example.com:80", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "0.0.0.0",
    "[::]", "[2001:db8::1]:80", "notlocalhost", "localhost:80@example.com", "evil#localhost",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_loopback_names_are_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/v1/tasks", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_foreign_names_are_forbidden(client: httpx.Client, api: Caller, host: str) -> None:
    for method, path in (("GET", "/v1/tasks"), ("POST", "/v1/tasks"), ("GET", "/metrics"), ("GET", "/healthz")):
        body = {"queue": QUEUE, "payload": 1} if method == "POST" else None
        response = client.request(method, path, json=body, headers={"Host": host})
        assert refused(response) == (403, "forbidden")
    assert api.tasks() == []


@pytest.mark.parametrize("origin", ["https://example.com", "http://localhost.example.com:8080", "null"])
def test_pages_of_other_sites_are_forbidden(client: httpx.Client, api: Caller, origin: str) -> None:
    api.die()
    before = api.everything()
    for path in ("/v1/dlq/purge", "/v1/dlq/requeue"):
        # A page may send a POST without a body anywhere.
        assert refused(client.post(path, headers={"Origin": origin})) == (403, "forbidden")
    assert api.everything() == before


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"])
def test_pages_of_this_machine_are_answered(client: httpx.Client, origin: str) -> None:
    assert client.post("/v1/dlq/purge", headers={"Origin": origin}).status_code == 200


def test_any_address_and_name_when_told_so(start_service: StartService, sqlite_url: str) -> None:
    service = start_service(sqlite_url, "--host", "0.0.0.0", MQ_INSECURE="true")
    with connect(service, "default") as client:
        for host in FOREIGN[:5]:
            assert client.get("/v1/tasks", headers={"Host": host}).status_code == 200


def test_errors_have_every_field(client: httpx.Client) -> None:
    response = client.get("/v1/tasks/none")
    check_problem(response)
    assert response.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": response.json()["detail"],
        "code": "task_not_found",
        "request_id": response.headers["X-Request-Id"],
    }


def _lines_with(server: Service, text: str) -> list[str]:
    """Lines of the log, which may be written a moment after the reply."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        lines = [line for line in server.log_text().splitlines() if text in line]
        if lines:
            return lines
        time.sleep(0.02)
    return []
