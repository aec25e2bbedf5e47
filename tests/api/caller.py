"""A tenant's calls over HTTP, with a default for whatever a test does not care about."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx

from tests.api.checking import ReplyCheck
from tests.service import Service

Json = dict[str, Any]
QUEUE = "work"
TIMEOUT_SECONDS = 40


def new_tenant() -> str:
    """A tenant that nobody else knows."""
    return f"tenant-{uuid4().hex}"


def connect(service: Service, tenant: str) -> httpx.Client:
    """A client that checks every reply."""
    return httpx.Client(
        base_url=service.url,
        headers={"X-Tenant-Id": tenant},
        timeout=TIMEOUT_SECONDS,
        # There is no TLS here, and to read the certificates would take longer than most tests.
        verify=False,
        event_hooks={"response": [ReplyCheck()]},
    )


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


class Caller:
    """One tenant; each call must succeed, and returns the reply. What is to be refused is asked of the client."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    @property
    def tenant(self) -> str:
        return self.client.headers["X-Tenant-Id"]

    def post(self, path: str, body: Json | None = None) -> Json:
        # Escaped as far as can be: what is no valid text, as a lone surrogate, can be said only so.
        content = None if body is None else json.dumps(body)
        return _reply(self.client.post(path, content=content, headers={"Content-Type": "application/json"}))

    def get(self, path: str, **parameters: str | int) -> Json:
        return _reply(self.client.get(path, params=parameters or None))

    def enqueue(self, **fields: Any) -> Json:
        payload = {} if "payload_base64" in fields else {"payload": None}
        return self.post("/v1/tasks", {"queue": QUEUE, **payload, **fields})

    def enqueue_many(self, *tasks: Json) -> list[Json]:
        filled = [{"queue": QUEUE, "payload": None, **task} for task in tasks]
        results: list[Json] = self.post("/v1/tasks/batch", {"tasks": filled})["results"]
        return results

    def reserve(self, **fields: Any) -> list[Json]:
        tasks: list[Json] = self.post("/v1/reserve", {"queues": [QUEUE], **fields})["tasks"]
        return tasks

    def lease(self, lease_seconds: float = 60, **fields: Any) -> Json:
        """Enqueues a task and reserves it."""
        accepted = self.enqueue(**fields)
        [task] = self.reserve(queues=[accepted["queue"]], lease_seconds=lease_seconds, worker_id="worker-1")
        assert task["id"] == accepted["id"]
        return task

    def lose_lease(self, **fields: Any) -> Json:
        """A task whose lease has run out, as it was when it was leased."""
        task = self.lease(lease_seconds=0.001, **fields)
        time.sleep(0.02)
        return task

    def settle(self, verb: str, task: Json, **fields: Any) -> Json:
        return self.post(f"/v1/tasks/{task['id']}/{verb}", {"lease_token": task["lease_token"], **fields})

    def settle_many(self, verb: str, *items: Json) -> list[Json]:
        results: list[Json] = self.post(f"/v1/tasks/{verb}", {"items": items})["results"]
        return results

    def die(self, reason: str = "broken", **fields: Any) -> Json:
        """Makes a dead letter."""
        task = self.lease(**fields)
        self.settle("fail", task, reason=reason)
        return task

    def task(self, task_id: str) -> Json:
        return self.get(f"/v1/tasks/{task_id}")

    def tasks(self, **parameters: str | int) -> list[Json]:
        return list(self.pages("/v1/tasks", **parameters))

    def dead_letters(self, **parameters: str | int) -> list[Json]:
        return list(self.pages("/v1/dlq", **parameters))

    def attempts(self, task_id: str, **parameters: str | int) -> list[Json]:
        return list(self.pages(f"/v1/tasks/{task_id}/attempts", **parameters))

    def pages(self, path: str, **parameters: str | int) -> Iterator[Json]:
        """The items of a list, page by page to its end."""
        page = self.get(path, **parameters)
        yield from page["items"]
        while page["next_cursor"] is not None:
            page = self.get(path, **{**parameters, "cursor": page["next_cursor"]})
            yield from page["items"]

    def everything(self) -> tuple[list[Json], list[Json]]:
        """What a request that is refused must leave as it was."""
        return self.tasks(), self.dead_letters()


def lease_of(task: Json) -> Json:
    """A task's id and token, as batches take them."""
    return {"id": task["id"], "lease_token": task["lease_token"]}


def ids(tasks: list[Json]) -> list[str]:
    return [task["id"] for task in tasks]


def _reply(response: httpx.Response) -> Json:
    assert response.is_success, response.text
    reply: Json = response.json()
    return reply
