"""A proxy before the service that loses replies: what it was asked is done, and the caller never hears of it."""

import json
import socket
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

from tests.servers.ports import LOOPBACK

# What happens to the requests in turn; most are answered.
FATES = ("drop", "answered", "unavailable", "answered", "shed", "answered", "answered")

ENOUGH = 4


class FlakyProxy:
    """`fates` tells how often what happened: `drop` and `unavailable` apply the request first, `shed` does not.

    The mark is a file that is made when some batches were answered.
    """

    def __init__(self, port: int, mark: Path) -> None:
        self.fates: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._turns = count()
        proxy = self

        class Handler(_Handler):
            def next_fate(self) -> str:
                fate = FATES[next(proxy._turns) % len(FATES)]
                proxy.fates[fate] += 1
                return fate

            def tell_answered(self, body: bytes) -> None:
                proxy._answered.update(task["dedupe_key"] for task in json.loads(body)["tasks"])
                if proxy.fates["answered"] >= ENOUGH:
                    mark.touch()

        Handler.port = port
        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def repeated(self) -> int:
        """How many rows were sent again although they had been answered."""
        return sum(times > 1 for times in self._answered.values())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port = 0

    def next_fate(self) -> str:
        raise NotImplementedError

    def tell_answered(self, body: bytes) -> None:
        raise NotImplementedError

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # The look before anything is sent is no batch.
        fate = "answered" if body == b'{"tasks":[]}' else self.next_fate()
        if fate == "shed":
            self._answer(503, b"{}", retry_after="0")
            return
        status, reply = self._forward(body)
        if fate == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif fate == "unavailable":
            self._answer(503, b'{"code":"unavailable","applied":null}', retry_after="0")
        else:
            self._answer(status, reply)
            self.tell_answered(body)

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        connection = HTTPConnection(LOOPBACK, self.port, timeout=60)
        headers = {"Content-Type": "application/json", "X-Tenant-Id": self.headers.get("X-Tenant-Id", "default")}
        connection.request("POST", self.path, body, headers)
        response = connection.getresponse()
        reply = response.read()
        connection.close()
        return response.status, reply

    def _answer(self, status: int, body: bytes, retry_after: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keeps quiet."""
