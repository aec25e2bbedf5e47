"""Connections that are kept open between requests."""

import os
import signal
import socket
import time
from http.client import HTTPConnection
from pathlib import Path

import httpx

from tests.servers.ports import LOOPBACK
from tests.service import Service

# Longer than servers of this kind keep an idle connection by default.
SUSPENDED_SECONDS = 6.0


def test_a_request_is_answered_that_came_while_the_process_was_suspended(tmp_path: Path) -> None:
    """Of a connection on which a request is waiting, nobody says that it was idle."""
    with Service(f"sqlite:///{tmp_path}/queue.db", tmp_path / "service.log") as service:
        connection = HTTPConnection(LOOPBACK, service.port)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        os.kill(service.pid, signal.SIGSTOP)
        connection.request("GET", "/healthz")
        time.sleep(SUSPENDED_SECONDS)
        os.kill(service.pid, signal.SIGCONT)
        assert connection.getresponse().status == 200
        connection.close()


def test_a_request_that_was_cut_off_is_not_carried_out(tmp_path: Path) -> None:
    """What has come of it makes sense, and is not all of it."""
    body = b'{"queue": "work", "payload": 1}'
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Type: application/json\r\nContent-Length: "
    with Service(f"sqlite:///{tmp_path}/queue.db", tmp_path / "service.log") as service:
        for missing, waiting in ((10, 0), (0, 1)):
            with socket.create_connection((LOOPBACK, service.port)) as connection:
                connection.sendall(f"{head}{len(body) + missing}\r\n\r\n".encode() + body)
                if missing:
                    connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
            stats = httpx.get(f"{service.url}/v1/queues/work/stats").json()
            assert stats["ready"] == waiting
