"""Replicas that start at the same moment on a database with nothing in it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.concurrency.conftest import QUIET
from tests.service import Service

REPLICAS = 4


def test_replicas_that_start_together_all_become_ready(database_url: str, tmp_path: Path) -> None:
    services = [Service(database_url, tmp_path / f"{number}.log", environment=QUIET) for number in range(REPLICAS)]
    with ExitStack() as stack, ThreadPoolExecutor(REPLICAS) as pool:
        for service in services:
            stack.callback(service.close)
        # Each waits until its service is ready, and raises if it never is.
        list(pool.map(lambda service: service.start(), services))
        accepted = httpx.post(f"{services[0].url}/v1/tasks", json={"queue": "work", "payload": None}).json()
        for service in services:
            assert httpx.get(f"{service.url}/v1/tasks/{accepted['id']}").json()["status"] == "ready"
