"""A database that stops answering half-way: who was served hears so, and only the others are told to come again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from app.repository.factory import connect_dialect
from tests.api.caller import Caller, connect, new_tenant
from tests.api.checking import refused
from tests.api.conftest import StartService
from tests.conftest import MakeDatabase

# How another connection keeps everybody from the dead letters, at which only tasks that are not live are looked for.
LOCKS = {
    "postgresql": "LOCK TABLE mq_task_dlq IN ACCESS EXCLUSIVE MODE",
    "mysql": "LOCK TABLES mq_task_dlq WRITE",
}
UNKNOWN = {"id": "unknown", "lease_token": "none"}


@asynccontextmanager
async def locked_dead_letters(url: str, dialect_name: str) -> AsyncIterator[None]:
    dialect = connect_dialect(url)
    async with dialect.connect(write=True) as connection:
        await connection.execute(text(LOCKS[dialect_name]))
        yield
        # The lock ends with its connection.
        await connection.invalidate()
    await dialect.close()


@pytest.mark.parametrize("dialect_name", LOCKS)
async def test_an_ack_that_took_effect_is_told(
    dialect_name: str, make_database: MakeDatabase, start_service: StartService
) -> None:
    url = make_database(dialect_name)
    service = start_service(url, MQ_DATABASE_LOCK_TIMEOUT_SECONDS="0.5")
    with connect(service, new_tenant()) as client:
        api = Caller(client)
        lease = api.lease(id="held")
        items = [{"id": "held", "lease_token": lease["lease_token"]}, UNKNOWN]
        async with locked_dead_letters(url, dialect_name):
            in_part = await asyncio.to_thread(client.post, "/v1/tasks/ack", json={"items": items})
            in_vain = await asyncio.to_thread(client.post, "/v1/tasks/ack", json={"items": [UNKNOWN]})
        held, unknown = in_part.json()["results"]
        assert held == {"id": "held", "status": "done", "ok": True}
        assert (unknown["ok"], unknown["code"]) == (False, "unavailable")
        assert refused(in_vain) == (503, "unavailable")
        assert in_vain.json()["applied"] is False
        assert api.task("held")["status"] == "done"
