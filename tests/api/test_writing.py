"""Replies of hot routes are written by ourselves, and are the same as those that the server writes."""

import json
import socket
from urllib.parse import urlsplit

import httpx
import uvicorn

from app.api.writing import KNOWN_UVICORN
from tests.api.caller import QUEUE
from tests.service import Service

TIMEOUT_SECONDS = 40


def post(client: httpx.Client, *, own_way: bool) -> httpx.Response:
    """Enqueue; a connection that is to be closed afterwards is left to the server."""
    headers = {"Connection": "close" if own_way else "keep-alive", "X-Request-Id": "same"}
    return client.post("/v1/tasks", json={"queue": QUEUE, "payload": 1}, headers=headers)


def shape(response: httpx.Response) -> tuple[object, ...]:
    """What does not change from one reply to the next."""
    names = [name for name, _ in response.headers.multi_items() if name != "connection"]
    body = response.json()
    assert response.headers["Location"] == f"/v1/tasks/{body['id']}"
    assert int(response.headers["Content-Length"]) == len(response.content)
    return response.status_code, response.reason_phrase, names, response.headers["X-Request-Id"], sorted(body)


def request(tenant: str, body: bytes) -> bytes:
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Tenant-Id: {tenant}\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def read_replies(connection: socket.socket, count: int) -> list[dict[str, object]]:
    """The bodies of so many replies on one connection."""
    reader = connection.makefile("rb")
    bodies = []
    for _ in range(count):
        lines = list(iter(reader.readline, b"\r\n"))
        [length] = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")]
        bodies.append(json.loads(reader.read(length)))
    return bodies


def test_a_reply_is_the_same_either_way(client: httpx.Client) -> None:
    assert shape(post(client, own_way=False)) == shape(post(client, own_way=True))


def test_the_server_is_one_that_is_known() -> None:
    assert uvicorn.__version__.startswith(KNOWN_UVICORN)


def test_requests_that_do_not_wait_for_replies_are_answered_in_order(client: httpx.Client, server: Service) -> None:
    bodies = [json.dumps({"queue": QUEUE, "payload": n, "id": f"task-{n}"}).encode() for n in range(20)]
    bodies[7] = b'{"queue": "work"}'
    url = urlsplit(server.url)
    with socket.create_connection((url.hostname, url.port or 80), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(b"".join(request(client.headers["X-Tenant-Id"], body) for body in bodies))
        replies = read_replies(connection, len(bodies))
    assert [reply.get("id", reply.get("code")) for reply in replies] == [
        "invalid_request" if n == 7 else f"task-{n}" for n in range(20)
    ]
