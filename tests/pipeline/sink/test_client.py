"""What may pass is tried again for a while; what cannot is told at once."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from app.pipeline.errors import PipelineError
from app.pipeline.sink.client import Client
from app.pipeline.sink.errors import DeliveryError
from app.pipeline.sink.options import SinkOptions
from tests.servers.ports import LOOPBACK, free_port
from tests.service import Service

# Status, headers and body.
Answer = tuple[int, dict[str, str], bytes]
Answering = Callable[..., str]
OK: Answer = (200, {}, b'{"results":[]}')


@pytest.fixture
def answering() -> Iterator[Answering]:
    """Starts a server that gives these answers one after the other, the last again and again, and tells its URL."""
    servers: list[ThreadingHTTPServer] = []

    def start(*answers: Answer) -> str:
        left = list(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, body = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Keeps quiet."""

        server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://{LOOPBACK}:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def client_of(url: str, slept: list[float] | None = None, **options: Any) -> Client:
    sleeps: list[float] = [] if slept is None else slept
    return Client(SinkOptions(url, **options), sleeps.append)


def test_retry_after_is_heeded(answering: Answering) -> None:
    slept: list[float] = []
    client = client_of(answering((503, {"Retry-After": "7"}, b"{}"), (429, {"Retry-After": "3"}, b"{}"), OK), slept)
    assert client.post(b"{}", None).status == 200
    assert slept == [7.0, 3.0]
    client.close()


def test_a_service_that_stays_away_is_given_up(answering: Answering) -> None:
    client = client_of(answering((503, {"Retry-After": "60"}, b'{"code":"unavailable"}')), retry_seconds=30.0)
    with pytest.raises(DeliveryError, match="could not take a batch: 503 unavailable"):
        client.post(b"{}", None)
    client.close()


@pytest.mark.parametrize("status", [301, 401, 403, 404, 415])
def test_what_is_not_about_rows_is_told_at_once(answering: Answering, status: int) -> None:
    slept: list[float] = []
    client = client_of(answering((status, {}, b'{"code":"forbidden"}')), slept, api_key="s3cret")
    with pytest.raises(DeliveryError, match=f"{status} forbidden") as error:
        client.post(b"{}", None)
    assert not slept
    assert "s3cret" not in str(error.value)
    client.close()


def test_a_refusal_of_somebody_else_is_none_of_rows(answering: Answering) -> None:
    client = client_of(answering((413, {}, b"<html>too large</html>")))
    with pytest.raises(DeliveryError, match="takes no tasks from here: 413"):
        client.post(b"{}", None)
    client.close()


@pytest.mark.parametrize("answer", [OK, (404, {}, b""), (422, {}, b'{"detail":[]}'), (401, {}, b"{}")])
def test_a_service_that_is_none_is_found_out_before_anything_is_sent(answering: Answering, answer: Answer) -> None:
    client = client_of(answering(answer))
    with pytest.raises(PipelineError, match=f"takes no tasks from here: {answer[0]}"):
        client.probe()
    client.close()


def test_a_service_that_cannot_be_reached_is_found_out() -> None:
    with pytest.raises(PipelineError, match="cannot be reached: ConnectionRefusedError"):
        client_of(f"http://{LOOPBACK}:{free_port()}").probe()


def test_a_real_service_is_taken_for_one(service: Service) -> None:
    client = client_of(service.url)
    client.probe()
    client.close()
