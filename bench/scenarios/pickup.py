"""How long a waiting worker waits for a task that is enqueued just now, at its own replica and at another."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from statistics import quantiles
from typing import Any

from bench.ratios import Claim
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage
from tests.servers.ports import LOOPBACK
from tests.service import Service

# Long enough for the worker's request to be waiting when the task comes.
SETTLE_SECONDS = 0.05
HEADERS = {"Content-Type": "application/json"}


def _post(connection: HTTPConnection, path: str, body: object) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(body), HEADERS)
    reply = connection.getresponse()
    content: dict[str, Any] = json.loads(reply.read())
    if reply.status >= 300:
        raise RuntimeError(f"{path} was refused: {content}")
    return content


def _wait_for_task(worker: HTTPConnection) -> float:
    """Reserve and ack one task; when the reserve was answered."""
    reserved = _post(worker, "/v1/reserve", {"queues": ["pickup"], "wait_seconds": 20})
    answered_at = time.perf_counter()
    [task] = reserved["tasks"]
    _post(worker, f"/v1/tasks/{task['id']}/ack", {"lease_token": task["lease_token"]})
    return answered_at


def _measure(stage: Stage, producer_at: Service, worker_at: Service) -> Measured:
    producer = HTTPConnection(LOOPBACK, producer_at.port)
    worker = HTTPConnection(LOOPBACK, worker_at.port)
    milliseconds: list[float] = []
    with ThreadPoolExecutor(max_workers=1) as thread:
        for _ in range(stage.form.pickup_samples):
            waiting = thread.submit(_wait_for_task, worker)
            time.sleep(SETTLE_SECONDS)
            enqueued_at = time.perf_counter()
            _post(producer, "/v1/tasks", {"queue": "pickup", "payload": {"n": 1}})
            milliseconds.append((waiting.result() - enqueued_at) * 1000)
    producer.close()
    worker.close()
    hundredths = quantiles(milliseconds, n=100, method="inclusive")
    return {"median_ms": hundredths[49], "p99_ms": hundredths[98]}


def _prepare(stage: Stage) -> list[Contestant]:
    url = stage.databases.create("postgresql")
    one, other = stage.start_service(url=url), stage.start_service(url=url)
    return [
        Contestant("same replica", lambda: _measure(stage, one, one)),
        Contestant("other replica", lambda: _measure(stage, one, other)),
    ]


def _claim(replica: str, required: float) -> Claim:
    text = f"Pick-up latency, idle, {replica} (PostgreSQL), median"
    return Claim(text, "pickup", f"{replica}.median_ms", None, required, at_least=False, unit=" ms")


PICKUP = Scenario(
    name="pickup",
    title="From enqueue to a waiting worker",
    prepare=_prepare,
    claims=[_claim("same replica", 5.0), _claim("other replica", 15.0)],
    shown=("median_ms", "p99_ms"),
)
