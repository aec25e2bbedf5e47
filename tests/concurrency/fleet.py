"""Two replicas on one database, and the calls that a test makes through both."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]
TIMEOUT_SECONDS = 60.0
# A connection is given up long before the server closes it.
LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=64, keepalive_expiry=1.0)


@dataclass(frozen=True)
class Reply:
    """What a replica answered; status 0 when it went away before it did."""

    status: int
    body: Json

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return str(self.body.get("code", ""))


GONE = Reply(0, {})


class Fleet:
    """The replicas as one tenant's callers use them; `failures` are the replies that no caller should ever see.

    `may_die`: a replica that goes away is no failure.
    """

    def __init__(self, clients: Sequence[httpx.AsyncClient], *, may_die: bool = False) -> None:
        self.failures: Counter[str] = Counter()
        self._may_die = may_die
        self.calls = 0
        self._clients = clients

    async def call(self, method: str, path: str, body: Json | None = None, replica: int | None = None) -> Reply:
        """Asks one of the replicas, any unless told which."""
        client = random.choice(self._clients) if replica is None else self._clients[replica]
        self.calls += 1
        try:
            response = await client.request(method, path, json=body)
        except httpx.TransportError:
            if not self._may_die:
                raise
            return GONE
        if response.status_code >= 500:
            self.failures[f"{method} {path}: {response.text}"] += 1
        return Reply(response.status_code, response.json())

    async def post(self, path: str, body: Json | None = None, replica: int | None = None) -> Reply:
        return await self.call("POST", path, body, replica)

    async def get(self, path: str, replica: int | None = None) -> Reply:
        return await self.call("GET", path, None, replica)

    async def enqueue_many(self, tasks: Sequence[Json], replica: int | None = None) -> list[Json]:
        """Enqueues tasks in one batch; the payload may be left out."""
        reply = await self.post("/v1/tasks/batch", {"tasks": [{"payload": None, **task} for task in tasks]}, replica)
        return list(reply.body.get("results", []))

    async def reserve(self, replica: int | None = None, **fields: Any) -> Json:
        """The reply of a reserve, with no tasks if it failed."""
        reply = await self.post("/v1/reserve", fields, replica)
        return reply.body if reply.ok else {"tasks": []}

    async def settle(self, verb: str, task: Json, replica: int | None = None, **fields: Any) -> Reply:
        body = {"lease_token": task["lease_token"], **fields}
        return await self.post(f"/v1/tasks/{task['id']}/{verb}", body, replica)

    async def settle_many(
        self, verb: str, tasks: Sequence[Json], replica: int | None = None, **fields: Any
    ) -> list[Json]:
        items = [{"id": task["id"], "lease_token": task["lease_token"], **fields} for task in tasks]
        return list((await self.post(f"/v1/tasks/{verb}", {"items": items}, replica)).body.get("results", []))


@asynccontextmanager
async def fleet_of(urls: Sequence[str], tenant: str, *, may_die: bool = False) -> AsyncIterator[Fleet]:
    """A fleet of the services at these addresses, as one tenant."""
    async with AsyncExitStack() as stack:
        clients = [
            httpx.AsyncClient(
                base_url=url, headers={"X-Tenant-Id": tenant}, timeout=TIMEOUT_SECONDS, limits=LIMITS, trust_env=False
            )
            for url in urls
        ]
        for client in clients:
            await stack.enter_async_context(client)
        yield Fleet(clients, may_die=may_die)
