"""Connections that are kept open between requests."""

import os
import signal
import time
from http.client import HTTPConnection
from pathlib import Path

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
