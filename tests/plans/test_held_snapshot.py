"""A snapshot that somebody holds open keeps what was taken in the indexes: reserve does not walk through it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import asyncpg
import pytest

from app.domain.commands import ReserveRequest
from app.repository import starts
from app.repository.factory import connect_dialect, open_repository
from app.repository.postgresql import PostgreSQL
from app.repository.protocol import Repository
from app.repository.schema import migrate
from tests.conformance.steps import LEASE_SECONDS, MAX_BYTES, QUEUE, TIMEOUT_SECONDS, WORKER, ack_item, new_task
from tests.conftest import MakeDatabase
from tests.statements import watched

TENANT = "tenant"
CHURNED = 15_000
AT_ONCE = 1000


@asynccontextmanager
async def held_snapshot(url: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM mq_queues")
            yield
    finally:
        await connection.close()


def wish(limit: int) -> ReserveRequest:
    return ReserveRequest(TENANT, [QUEUE], limit, LEASE_SECONDS, MAX_BYTES, [], [], WORKER)


async def churn(repository: Repository) -> None:
    for _ in range(CHURNED // AT_ONCE):
        await repository.enqueue_many(TENANT, [new_task() for _ in range(AT_ONCE)])
        [reserved] = await repository.reserve_many([wish(AT_ONCE)])
        await repository.ack_many(TENANT, [ack_item(leased) for leased in reserved.tasks])


async def pages_read(url: str, dialect: PostgreSQL, parameters: Mapping[str, object]) -> int:
    """The pages that the claim looks at; it is taken back."""
    sql, values = dialect.numbered.prepare("claim_at_once", parameters)
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        told = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *values)
        await transaction.rollback()
    finally:
        await connection.close()
    return int(json.loads(told)[0]["Plan"]["Shared Hit Blocks"])


async def test_reserve_begins_behind_what_was_taken(
    make_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "LIFE_SECONDS", 3600.0)
    monkeypatch.setattr(starts, "LATE", starts.LATE * 0)
    url = make_database("postgresql")
    dialect = connect_dialect(url)
    assert isinstance(dialect, PostgreSQL)
    claims: list[Mapping[str, object]] = []
    try:
        await migrate(dialect)
        repository = open_repository(dialect, timeout_seconds=TIMEOUT_SECONDS)
        async with held_snapshot(url):
            await churn(repository)
            await repository.enqueue_many(TENANT, [new_task() for _ in range(10)])
            await repository.reserve_many([wish(1)])
            with watched(dialect, lambda _, parameters: claims.append(parameters)):
                await repository.reserve_many([wish(1)])
            [claim] = claims
            assert claim["start_seq"]
            walked = await pages_read(url, dialect, {**claim, **starts.NO_START})
            assert await pages_read(url, dialect, claim) * 5 < walked
    finally:
        await dialect.close()
