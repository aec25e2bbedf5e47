"""One tenant's calls to one replica, among them those that wait."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

Json = dict[str, Any]
QUEUE = "work"
# A wait that lasts this long was not ended by what should have ended it.
WAIT_SECONDS = 16.0
# Long before the wait ends, and before anybody polls whom a test told to poll seldom.
SOON_SECONDS = WAIT_SECONDS / 2
SELDOM = {"MQ_WAIT_POLL_SECONDS": "20"}
# Time enough for a call to have arrived, looked in vain and gone to sleep.
SETTLE_SECONDS = 0.7


class Replica:
    """The calls must succeed."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._waits: list[Wait] = []

    async def call(self, method: str, path: str, body: Json | None = None) -> Json:
        response = await self._client.request(method, path, json=body)
        assert response.is_success, response.text
        reply: Json = response.json()
        return reply

    async def post(self, path: str, body: Json | None = None) -> Json:
        return await self.call("POST", path, body)

    async def get(self, path: str) -> Json:
        return await self.call("GET", path)

    async def enqueue(self, **fields: Any) -> str:
        """Enqueues a task and returns its id."""
        reply = await self.post("/v1/tasks", {"queue": QUEUE, "payload": None, **fields})
        return str(reply["id"])

    async def enqueue_many(self, count: int, **fields: Any) -> list[str]:
        tasks = [{"queue": QUEUE, "payload": None, **fields} for _ in range(count)]
        return [result["id"] for result in (await self.post("/v1/tasks/batch", {"tasks": tasks}))["results"]]

    async def reserve(self, **fields: Any) -> list[Json]:
        tasks: list[Json] = (await self.post("/v1/reserve", {"queues": [QUEUE], "lease_seconds": 60, **fields}))[
            "tasks"
        ]
        return tasks

    async def lease(self, **fields: Any) -> Json:
        """Reserves the one task that there is."""
        [task] = await self.reserve(**fields)
        return task

    async def settle(self, verb: str, task: Json, **fields: Any) -> Json:
        return await self.post(f"/v1/tasks/{task['id']}/{verb}", {"lease_token": task["lease_token"], **fields})

    async def start_wait(self, **fields: Any) -> "Wait":
        """A caller that waits for work by now."""
        [wait] = await self.start_waits(1, **fields)
        return wait

    async def start_waits(self, count: int, **fields: Any) -> "list[Wait]":
        waits = [Wait(self, {"wait_seconds": WAIT_SECONDS, **fields}) for _ in range(count)]
        self._waits += waits
        await asyncio.sleep(SETTLE_SECONDS + count / 100)
        for wait in waits:
            wait.check_waiting()
        return waits

    async def end_waits(self) -> None:
        """Nobody waits any longer."""
        await asyncio.gather(*(wait.hang_up() for wait in self._waits))


class Wait:
    """A reserve that is under way."""

    def __init__(self, replica: Replica, fields: Json) -> None:
        self._call = asyncio.create_task(replica.reserve(**fields))

    @property
    def is_over(self) -> bool:
        return self._call.done()

    def check_waiting(self) -> None:
        if self._call.done():
            raise AssertionError(f"does not wait: {self._call.result()}")

    async def tasks(self) -> list[Json]:
        """What the caller gets in the end."""
        return await self._call

    async def soon(self) -> list[str]:
        """The ids of what the caller gets, which must be soon."""
        return await self.within(SOON_SECONDS)

    async def within(self, seconds: float) -> list[str]:
        started = time.monotonic()
        tasks = await self._call
        assert time.monotonic() - started < seconds
        return [task["id"] for task in tasks]

    async def hang_up(self) -> None:
        """The caller goes away without an answer."""
        self._call.cancel()
        await asyncio.gather(self._call, return_exceptions=True)


def client_at(url: str, tenant: str) -> httpx.AsyncClient:
    """As many connections as there are calls."""
    return httpx.AsyncClient(
        base_url=url,
        headers={"X-Tenant-Id": tenant},
        timeout=60,
        limits=httpx.Limits(max_connections=None),
        trust_env=False,
    )


@asynccontextmanager
async def replica_at(url: str, tenant: str) -> AsyncIterator[Replica]:
    async with client_at(url, tenant) as client:
        replica = Replica(client)
        try:
            yield replica
        finally:
            await replica.end_waits()
