"""A row that somebody holds by hand: only who needs it has to come again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from app.repository.factory import connect_dialect
from tests.api.caller import Caller, Json, connect, lease_of, new_tenant
from tests.api.conftest import StartService
from tests.conftest import MakeDatabase

TASKS = 6


@asynccontextmanager
async def locked_task(url: str, task: Json) -> AsyncIterator[None]:
    dialect = connect_dialect(url)
    async with dialect.connect(write=True) as connection:
        await connection.execute(text("SELECT seq FROM mq_tasks WHERE id = :id FOR UPDATE"), {"id": task["id"]})
        yield
        await connection.rollback()
    await dialect.close()


@pytest.mark.parametrize("dialect_name", ["postgresql", "mysql"])
async def test_others_of_the_same_moment_are_acked(
    dialect_name: str, make_database: MakeDatabase, start_service: StartService
) -> None:
    url = make_database(dialect_name)
    service = start_service(url, MQ_DATABASE_LOCK_TIMEOUT_SECONDS="0.5")
    with connect(service, new_tenant()) as client:
        api = Caller(client)
        api.enqueue_many(*({"payload": 1} for _ in range(TASKS)))
        tasks = api.reserve(limit=TASKS)

        def ack(task: Json) -> int:
            body = {"lease_token": lease_of(task)["lease_token"]}
            return client.post(f"/v1/tasks/{task['id']}/ack", json=body, timeout=60).status_code

        async with locked_task(url, tasks[0]):
            statuses = await asyncio.gather(*(asyncio.to_thread(ack, task) for task in tasks))
        assert statuses == [503] + [200] * (TASKS - 1)
