"""`python -m tests.scale.million [dialect …]`: a million tasks in one queue of a real service, and what calls take.

Times are printed, never judged: they are the machine's. What is judged is that the answers are right.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import httpx
from sqlalchemy import text

from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect
from app.repository.schema import migrate
from tests.filling import Filler
from tests.servers import Server, start_mysql, start_postgresql
from tests.service import Service

MILLION = 1_000_000
PATIENCE_SECONDS = 600.0
Json = dict[str, Any]


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"  {what:<58}{1000 * (time.perf_counter() - started):>12,.1f} ms", flush=True)


class Calls:
    """A caller's calls to the service, which must succeed."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        response = self._client.request(method, path, json=body)
        assert response.is_success, response.text
        reply: Json = response.json()
        return reply

    def reserve(self, *queues: str) -> Json:
        return self.send("POST", "/v1/reserve", {"queues": queues, "lease_seconds": 3600})

    def median_of(self, what: str, times: int, call: Callable[[], object]) -> None:
        taken = []
        for _ in range(times):
            started = time.perf_counter()
            call()
            taken.append(time.perf_counter() - started)
        print(f"  {what:<58}{1000 * median(taken):>12,.1f} ms, median of {times}", flush=True)


async def fill(dialect: Dialect, *, history: bool) -> None:
    filler = Filler(dialect, "default", datetime.now(UTC) - timedelta(seconds=2 * MILLION))
    with timed("filling in a million tasks"):
        await filler.tasks("million", MILLION, id=filler.named(f"million-{uuid4().hex}"))
    if history:
        with timed("filling in a million finished ones and their attempts"):
            await filler.attempts("million", MILLION)
            await filler.history("million", MILLION, keep_until="NULL")
    await filler.analyze()


async def prepare(url: str) -> Dialect:
    dialect = connect_dialect(url)
    await migrate(dialect)
    filler = Filler(dialect, "default", datetime.now(UTC))
    await filler.prepare(MILLION)
    return dialect


def look(calls: Calls) -> None:
    """Looking at a queue of a million, and at a small one beside it."""
    calls.median_of("reserve of the large queue", 50, lambda: calls.reserve("million"))
    served = Counter(calls.reserve("million", "small")["tasks"][0]["queue"] for _ in range(40))
    print(f"  served in turns: {dict(served)}")
    assert abs(served["million"] - served["small"]) <= 2
    with timed("statistics, first call"):
        stats = calls.send("GET", "/v1/queues/million/stats")
    assert not stats["exact"]
    assert abs(stats["ready"] - MILLION) < 0.05 * MILLION
    with timed("statistics, second call"):
        calls.send("GET", "/v1/queues/million/stats")
    calls.median_of("statistics, a hundred calls", 100, lambda: calls.send("GET", "/v1/queues/million/stats"))
    calls.median_of("statistics of the small queue", 20, lambda: calls.send("GET", "/v1/queues/small/stats"))
    for name, priority in (("last", -1), ("first", 99)):
        calls.send("POST", "/v1/tasks", {"queue": "million", "payload": 0, "id": name, "priority": priority})
        calls.median_of(f"explain of the {name}", 10, partial(calls.send, "GET", f"/v1/tasks/{name}/explain"))
    calls.send("DELETE", "/v1/tasks/first")
    for path in (
        "queue=small",
        "queue=million",
        "status=leased",
        "queue=small&status=ready",
        "type=absent&queue=small",
    ):
        calls.median_of(f"list ?{path}", 10, partial(calls.send, "GET", f"/v1/tasks?{path}"))
    for path in ("queue=million&status=done", "queue=small&status=done", "status=done"):
        calls.median_of(f"list ?{path}", 10, partial(calls.send, "GET", f"/v1/tasks?{path}"))


def take_away(calls: Calls) -> None:
    with timed("cleanup of a million finished tasks"):
        deleted = calls.send("POST", "/v1/queues/million/cleanup", {"older_than_seconds": 1})["deleted"]
    assert deleted >= MILLION
    with timed("purge of a million tasks"):
        purged = calls.send("POST", "/v1/queues/million/purge")["purged"]
    print(f"  purged: {purged:,}")
    assert calls.send("GET", "/v1/queues/million/stats")["ready"] == 0


async def delete(calls: Calls, dialect: Dialect) -> None:
    with timed("deleting the queue"):
        calls.send("DELETE", "/v1/queues/million")
    calls.send("PUT", "/v1/queues/million", {})
    assert calls.send("GET", "/v1/queues/million/stats")["ready"] == 0
    assert not calls.reserve("million")["tasks"]
    with timed("until the janitor has cleared the rows away"):
        while (left := await rows(dialect)) > 10_000:
            calls.median_of(f"reserve of the small queue, {left:,} rows left", 20, lambda: calls.reserve("small"))
            await asyncio.sleep(10)


async def rows(dialect: Dialect) -> int:
    async with dialect.connect(write=False) as connection:
        return int((await connection.execute(text("SELECT count(*) FROM mq_tasks"))).scalar_one())


async def run(url: str, directory: Path) -> None:
    dialect = await prepare(url)
    with (
        Service(url, directory / "leasemq.log") as service,
        httpx.Client(base_url=service.url, timeout=PATIENCE_SECONDS, trust_env=False) as client,
    ):
        calls = Calls(client)
        for queue in ("million", "small"):
            calls.send("PUT", f"/v1/queues/{queue}", {})
        await fill(dialect, history=True)
        tasks = [{"queue": "small", "payload": number} for number in range(500)]
        calls.send("POST", "/v1/tasks/batch", {"tasks": tasks})
        look(calls)
        take_away(calls)
        await fill(dialect, history=False)
        await delete(calls, dialect)
        print(f"  warnings in the log: {service.log_text().count('WARNING')}")
    await dialect.close()


def main() -> None:
    dialects = sys.argv[1:] or ["sqlite", "postgresql", "mysql"]
    for dialect in dialects:
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-")))
            print(dialect, flush=True)
            if dialect == "sqlite":
                asyncio.run(run(f"sqlite:///{directory}/million.db", directory))
                continue
            server = {"postgresql": start_postgresql, "mysql": start_mysql}[dialect](directory)
            assert isinstance(server, Server), server
            stack.callback(server.close)
            asyncio.run(run(server.create_database("million"), Path(tempfile.gettempdir())))


if __name__ == "__main__":
    main()
