"""Replicas that come and go, and callers that do not mind which one answers."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.service import Service

Json = dict[str, Any]
# What a caller that lost its replica does before it asks another one.
BREATH_SECONDS = 0.05


class Fleet:
    """Several replicas on one database, and one tenant's calls to any of those that live."""

    def __init__(self, services: Sequence[Service], tenant: str) -> None:
        self._services = services
        self._dead: set[int] = set()
        self._client = httpx.AsyncClient(
            headers={"X-Tenant-Id": tenant}, timeout=30, limits=httpx.Limits(max_connections=None), trust_env=False
        )
        self.failures: list[str] = []

    async def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """The reply of whichever replica; one that has been killed is no failure, and another is asked instead."""
        while True:
            number = random.choice([n for n in range(len(self._services)) if n not in self._dead])
            try:
                response = await self._client.request(method, self._services[number].url + path, json=body)
            except httpx.TransportError:
                if number not in self._dead:
                    raise
                await asyncio.sleep(BREATH_SECONDS)
                continue
            if response.status_code >= 500:
                self.failures.append(f"{method} {path}: {response.text}")
            reply: Json = {"status_code": response.status_code, **response.json()}
            return reply

    async def post(self, path: str, body: Json) -> Json:
        return await self.call("POST", path, body)

    async def settle(self, verb: str, task: Json, **fields: Any) -> Json:
        return await self.post(f"/v1/tasks/{task['id']}/{verb}", {"lease_token": task["lease_token"], **fields})

    async def stats(self, queue: str) -> Json:
        return await self.call("GET", f"/v1/queues/{queue}/stats")

    def kill(self, number: int) -> None:
        """Ends a replica as a power cut would."""
        self._dead.add(number)
        self._services[number].kill()

    def revive(self, number: int) -> None:
        self._services[number].start()
        self._dead.remove(number)

    async def close(self) -> None:
        await self._client.aclose()


@contextmanager
def services_on(database_url: str, log: Path, *environments: Json) -> Iterator[list[Service]]:
    """Running replicas, one for each environment."""
    log.mkdir(exist_ok=True)
    services = [
        Service(database_url, log / f"{number}.log", environment=environment)
        for number, environment in enumerate(environments)
    ]
    try:
        for service in services:
            service.start()
        yield services
    finally:
        for service in services:
            service.close()
