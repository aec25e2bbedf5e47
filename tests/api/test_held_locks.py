"""What somebody else holds locked for too long: only who needs it is told to come again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from sqlalchemy import text

from app.repository.factory import connect_dialect
from tests.api.caller import Caller, Json, connect, lease_of, new_tenant
from tests.api.checking import refused
from tests.api.conftest import StartService
from tests.conftest import MakeDatabase

# Where only tasks that are not live are looked for.
DEAD_LETTERS = {
    "postgresql": "LOCK TABLE mq_task_dlq IN ACCESS EXCLUSIVE MODE",
    "mysql": "LOCK TABLES mq_task_dlq WRITE",
}
ONE_TASK = "SELECT seq FROM mq_tasks WHERE id = :id FOR UPDATE"
UNKNOWN = {"id": "unknown", "lease_token": "none"}
TASKS = 6
ANSWER_SECONDS = 60


@pytest.fixture(params=DEAD_LETTERS)
def dialect_name(request: pytest.FixtureRequest) -> str:
    """The databases that lock less than the whole."""
    return str(request.param)


@pytest.fixture
def url(dialect_name: str, make_database: MakeDatabase) -> str:
    return make_database(dialect_name)


@pytest.fixture
def impatient(url: str, start_service: StartService) -> Iterator[httpx.Client]:
    """A client of a service that does not wait long for locks."""
    service = start_service(url, MQ_DATABASE_LOCK_TIMEOUT_SECONDS="0.5")
    with connect(service, new_tenant()) as client:
        client.timeout = httpx.Timeout(ANSWER_SECONDS)
        yield client


@asynccontextmanager
async def held(url: str, lock: str, **parameters: str) -> AsyncIterator[None]:
    dialect = connect_dialect(url)
    async with dialect.connect(write=True) as connection:
        await connection.execute(text(lock), parameters)
        yield
        # The lock ends with its connection.
        await connection.invalidate()
    await dialect.close()


async def test_an_ack_that_took_effect_is_told(impatient: httpx.Client, url: str, dialect_name: str) -> None:
    api = Caller(impatient)
    lease = lease_of(api.lease(id="held"))
    async with held(url, DEAD_LETTERS[dialect_name]):
        in_part = await asyncio.to_thread(impatient.post, "/v1/tasks/ack", json={"items": [lease, UNKNOWN]})
        in_vain = await asyncio.to_thread(impatient.post, "/v1/tasks/ack", json={"items": [UNKNOWN]})
    acked, unknown = in_part.json()["results"]
    assert acked == {"id": "held", "status": "done", "ok": True}
    assert (unknown["ok"], unknown["code"]) == (False, "unavailable")
    assert refused(in_vain) == (503, "unavailable")
    assert in_vain.json()["applied"] is False
    assert api.task("held")["status"] == "done"


async def test_others_of_the_same_moment_are_acked(impatient: httpx.Client, url: str) -> None:
    api = Caller(impatient)
    api.enqueue_many(*({"payload": 1} for _ in range(TASKS)))
    tasks = api.reserve(limit=TASKS)

    def ack(task: Json) -> int:
        body = {"lease_token": task["lease_token"]}
        return impatient.post(f"/v1/tasks/{task['id']}/ack", json=body).status_code

    async with held(url, ONE_TASK, id=tasks[0]["id"]):
        statuses = await asyncio.gather(*(asyncio.to_thread(ack, task) for task in tasks))
    assert statuses == [503] + [200] * (TASKS - 1)
