"""What is too large is refused, without being read whole, and what is exactly as large as allowed is taken."""

import base64
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, Json, lease_of
from tests.api.checking import refused
from tests.service import Service

KIB = 1024
MIB = 1024 * KIB
TOO_LARGE = (413, "payload_too_large")


def text_of(size: int, character: str = "x") -> str:
    """A string whose JSON has so many bytes."""
    whole = character * ((size - 2) // len(character.encode()))
    return whole + "x" * (size - 2 - len(whole.encode()))


def meta_of(size: int) -> Json:
    """An object whose JSON has so many bytes as httpx writes it."""
    return {"k": "x" * (size - len('{"k":""}'))}


@pytest.mark.parametrize("character", ["x", "ü", "𝄞"])
def test_payload_of_256_kib(api: Caller, client: httpx.Client, character: str) -> None:
    largest = text_of(256 * KIB, character)
    accepted = client.post("/v1/tasks", json={"queue": QUEUE, "payload": largest})
    assert accepted.status_code == 201
    assert api.reserve()[0]["payload"] == largest
    over = client.post("/v1/tasks", json={"queue": QUEUE, "payload": largest + "x"})
    assert refused(over) == TOO_LARGE
    assert len(api.tasks()) == 1


def test_bytes_of_256_kib(api: Caller, client: httpx.Client) -> None:
    largest = bytes(range(256)) * KIB
    given = base64.b64encode(largest).decode()
    accepted = client.post("/v1/tasks", json={"queue": QUEUE, "payload_base64": given})
    assert accepted.status_code == 201
    assert api.task(accepted.json()["id"])["payload_base64"] == given
    over = base64.b64encode(largest + b"x").decode()
    assert refused(client.post("/v1/tasks", json={"queue": QUEUE, "payload_base64": over})) == TOO_LARGE
    assert len(api.tasks()) == 1


def test_meta_of_16_kib(api: Caller, client: httpx.Client) -> None:
    largest, over = meta_of(16 * KIB), meta_of(16 * KIB + 1)
    accepted = client.post("/v1/tasks", json={"queue": QUEUE, "payload": 1, "meta": largest})
    assert accepted.status_code == 201
    assert api.task(accepted.json()["id"])["meta"] == largest
    assert refused(client.post("/v1/tasks", json={"queue": QUEUE, "payload": 1, "meta": over})) == TOO_LARGE
    assert len(api.tasks()) == 1


def test_result_of_256_kib(api: Caller, client: httpx.Client) -> None:
    task, largest = api.lease(), text_of(256 * KIB)
    path = f"/v1/tasks/{task['id']}/ack"
    over = client.post(path, json={"lease_token": task["lease_token"], "result": largest + "x"})
    assert refused(over) == TOO_LARGE
    batch = client.post("/v1/tasks/ack", json={"items": [{**lease_of(task), "result": largest + "x"}]})
    assert refused(batch) == TOO_LARGE
    assert api.task(task["id"])["status"] == "leased"
    api.settle("ack", task, result=largest)
    assert api.task(task["id"])["result"] == largest


@pytest.mark.parametrize("flaw", [{"payload": text_of(256 * KIB + 1)}, {"meta": meta_of(16 * KIB + 1)}])
def test_batch_with_one_task_too_large_accepts_nothing(api: Caller, flaw: Json) -> None:
    tasks = [{"queue": QUEUE, "payload": 1}, {"queue": QUEUE, "payload": 1, **flaw}]
    assert refused(api.client.post("/v1/tasks/batch", json={"tasks": tasks})) == TOO_LARGE
    assert api.tasks() == []


def batch_content(size: int) -> bytes:
    """A batch of so many bytes, whose payloads are all small enough."""
    task = json.dumps({"queue": QUEUE, "payload": "x" * 200_000})
    content = f'{{"tasks":[{",".join([task] * (size // (len(task) + 2)))}]'
    return (content + " " * (size - len(content) - 1) + "}").encode()


def test_request_of_8_mib(api: Caller) -> None:
    headers = {"Content-Type": "application/json"}
    largest = api.client.post("/v1/tasks/batch", content=batch_content(8 * MIB), headers=headers)
    assert largest.status_code == 200
    count = len(largest.json()["results"])
    over = api.client.post("/v1/tasks/batch", content=batch_content(8 * MIB + 1), headers=headers)
    assert refused(over) == TOO_LARGE
    listed = len(api.tasks(limit=10))
    assert (listed, count) == (count, 41)


def converse(server: Service, tenant: str, head: list[str], body: bytes) -> httpx.Response:
    """Sends a request by hand, of which the body may never be whole, and returns the answer."""
    address = urlsplit(server.url)
    lines = ["POST /v1/tasks HTTP/1.1", f"Host: {address.netloc}", "Content-Type: application/json", *head]
    start = "\r\n".join([*lines, f"X-Tenant-Id: {tenant}", "", ""]).encode()
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as connection:
        connection.sendall(start + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        answer, _, content = received.partition(b"\r\n\r\n")
        status, *fields = answer.decode().split("\r\n")
        headers = httpx.Headers(dict(field.split(": ", 1) for field in fields))
        while len(content) < int(headers["Content-Length"]):
            content += connection.recv(65536)
    return httpx.Response(int(status.split()[1]), headers=headers, content=content)


@pytest.mark.parametrize("length", [8 * MIB + 1, 10**12])
def test_declared_size_is_refused_before_the_body_is_sent(server: Service, api: Caller, length: int) -> None:
    response = converse(server, api.tenant, [f"Content-Length: {length}"], b"")
    assert refused(response) == TOO_LARGE
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["request_id"] == response.headers["X-Request-Id"]
    assert api.tasks() == []


def test_chunks_are_refused_before_they_end(server: Service, api: Caller) -> None:
    chunk = b"%x\r\n%s\r\n" % (64 * KIB, b" " * 64 * KIB)
    # One chunk too many, and no end: who waits for the whole body never answers.
    response = converse(server, api.tenant, ["Transfer-Encoding: chunked"], chunk * 129)
    assert refused(response) == TOO_LARGE
    assert response.json()["request_id"] == response.headers["X-Request-Id"]
    assert api.tasks() == []


def test_chunked_request_is_taken(api: Caller) -> None:
    def chunks() -> list[bytes]:
        return [b'{"queue":"work",', b'"payload":1', b"}"]

    response = api.client.post("/v1/tasks", content=iter(chunks()), headers={"Content-Type": "application/json"})
    assert response.status_code == 201


def test_chunked_request_needs_its_content_type_too(api: Caller) -> None:
    response = api.client.post("/v1/tasks", content=iter([b'{"queue":"work","payload":1}']))
    assert refused(response) == (415, "unsupported_media_type")
    assert api.tasks() == []


def test_large_results_of_many_callers(api: Caller, client: httpx.Client) -> None:
    """Calls that share a transaction are together no larger than what a database takes at once."""
    callers, tasks_each = 6, 31
    api.enqueue_many(*({"payload": 1} for _ in range(callers * tasks_each)))
    tasks = api.reserve(limit=callers * tasks_each)
    # Written as JSON in JSON in SQL, each of these becomes many.
    items = [{**lease_of(task), "result": '"' * (128 * KIB - 1)} for task in tasks]
    batches = [items[first : first + tasks_each] for first in range(0, len(items), tasks_each)]
    with ThreadPoolExecutor(max_workers=callers) as pool:
        replies = list(pool.map(lambda batch: client.post("/v1/tasks/ack", json={"items": batch}), batches))
    assert [reply.status_code for reply in replies] == [200] * callers
    assert all(result["ok"] for reply in replies for result in reply.json()["results"])
