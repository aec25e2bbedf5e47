"""The queue as the tests see it: what waits in it, and workers that drain it meanwhile."""

from collections import Counter
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

import httpx

Json = dict[str, Any]


class Queue:
    """One queue of one tenant of a service."""

    def __init__(self, url: str, name: str, tenant: str = "default") -> None:
        self.name = name
        self._client = httpx.Client(
            base_url=url, headers={"X-Tenant-Id": tenant}, timeout=60, trust_env=False, limits=httpx.Limits(
                keepalive_expiry=1.0
            )
        )  # fmt: skip

    def take_all(self) -> list[Json]:
        """Every task that is due, acked."""
        taken: list[Json] = []
        while tasks := self.take():
            taken += tasks
        return taken

    def take(self, wait_seconds: float = 0.0) -> list[Json]:
        """Some tasks, acked."""
        asked = {"queues": [self.name], "limit": 500, "wait_seconds": wait_seconds}
        tasks: list[Json] = self._post("/v1/reserve", asked)["tasks"]
        if tasks:
            items = [{"id": task["id"], "lease_token": task["lease_token"]} for task in tasks]
            assert all(result["ok"] for result in self._post("/v1/tasks/ack", {"items": items})["results"])
        return tasks

    def add(self, *tasks: Json) -> None:
        self._post("/v1/tasks/batch", {"tasks": [{"queue": self.name, **task} for task in tasks]})

    def fail_all(self) -> None:
        """Makes every task a dead letter."""
        tasks = self._post("/v1/reserve", {"queues": [self.name], "limit": 500})["tasks"]
        items = [{"id": task["id"], "lease_token": task["lease_token"], "reason": "no"} for task in tasks]
        self._post("/v1/tasks/fail", {"items": items})

    def waiting(self) -> int:
        stats = self._client.get(f"/v1/queues/{self.name}/stats").raise_for_status().json()
        return int(stats["ready"]) + int(stats["scheduled"])

    def look(self, task_id: str) -> Json:
        task: Json = self._client.get(f"/v1/tasks/{task_id}").raise_for_status().json()
        return task

    def close(self) -> None:
        self._client.close()

    def _post(self, path: str, body: Json) -> Json:
        reply: Json = self._client.post(path, json=body).raise_for_status().json()
        return reply


class Drain:
    """A worker that acks whatever is in the queue, until told to stop; then it looks once more."""

    def __init__(self, queue: Queue) -> None:
        self.payloads: Counter[str] = Counter()
        self._queue = queue
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._count(self._queue.take(wait_seconds=0.1))
        self._count(self._queue.take_all())

    def _count(self, tasks: list[Json]) -> None:
        self.payloads.update(str(task["payload"]) for task in tasks)
