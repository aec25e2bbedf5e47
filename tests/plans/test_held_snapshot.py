"""A snapshot that somebody holds open keeps what was taken in the indexes: reserve does not walk through it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from app.domain.commands import ReserveRequest
from app.domain.queue import QueueSettings
from app.repository import starts
from app.repository.factory import Repositories, connect_dialect, open_repositories
from app.repository.postgresql import PostgreSQL
from app.repository.protocol import Repository
from app.repository.schema import migrate
from tests.conformance.steps import LEASE_SECONDS, MAX_BYTES, QUEUE, TIMEOUT_SECONDS, WORKER, ack_item, new_task
from tests.conftest import MakeDatabase
from tests.plans.recording import as_sent_to_postgresql, pages_read
from tests.statements import watched

TENANT = "tenant"
CHURNED = 15_000
AT_ONCE = 1000
# Some of the leases would have ended by now, some would not.
CHURNED_LEASE_SECONDS = (0.5, 60.0)
TYPE = "mail"
UNLIMITED = QueueSettings()


@asynccontextmanager
async def held_snapshot(url: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM mq_queues")
            yield
    finally:
        await connection.close()


def wish(limit: int, queues: Sequence[str] = (QUEUE,), types: Sequence[str] = ()) -> ReserveRequest:
    return ReserveRequest(TENANT, queues, limit, LEASE_SECONDS, MAX_BYTES, types, [], WORKER)


async def enqueue(repository: Repository, count: int) -> None:
    await repository.enqueue_many(TENANT, [new_task(type=TYPE) for _ in range(count)])


async def churn(repository: Repository) -> None:
    for lease_seconds in islice(cycle(CHURNED_LEASE_SECONDS), CHURNED // AT_ONCE):
        await enqueue(repository, AT_ONCE)
        [reserved] = await repository.reserve_many([replace(wish(AT_ONCE), lease_seconds=lease_seconds)])
        await repository.ack_many(TENANT, [ack_item(leased) for leased in reserved.tasks])


def from_the_front(parameters: Mapping[str, Any]) -> dict[str, object]:
    """The parameters of a statement for which nothing is remembered."""
    if "lanes" not in parameters:
        return {**parameters, **starts.NO_START}
    return {**parameters, "lanes": [{**lane, **starts.NO_START, "knows_leases": False} for lane in parameters["lanes"]]}


@dataclass(frozen=True)
class Case:
    """A reserve of a queue with so many ready tasks, and the statements that it takes."""

    asked: ReserveRequest
    ready: int
    sent: Sequence[str]
    settings: QueueSettings = UNLIMITED


CASES = {
    "one queue": Case(wish(1), 10, ["claim_at_once"]),
    "an empty queue": Case(wish(1), 0, ["claim_at_once", "probe_overdue", "claim_queue", "next_available"]),
    "a type": Case(wish(1, types=[TYPE]), 10, ["probe_overdue", "claim_lanes"]),
    "none of a type": Case(wish(1, types=[TYPE]), 0, ["probe_overdue", "claim_lanes", "next_available"]),
    "several queues": Case(wish(1, [QUEUE, "another"]), 10, ["probe_overdue", "claim_lanes"]),
    "empty queues": Case(wish(1, [QUEUE, "another"]), 0, ["probe_overdue", "claim_lanes", "next_available"]),
    "a rate": Case(wish(1), 10, ["probe_overdue", "claim_queue"], QueueSettings(rate_per_second=1000)),
}


SLOW = QueueSettings(rate_per_second=0.001)


@dataclass(frozen=True)
class Held:
    """A database under a held snapshot, in which very many tasks of a queue have come and gone."""

    dialect: PostgreSQL
    repositories: Repositories

    async def prepare(self, case: Case) -> None:
        await self.repositories.topology.put_queue(TENANT, QUEUE, UNLIMITED)
        await self.repositories.tasks.reserve_many([wish(AT_ONCE)])
        await self.repositories.topology.put_queue(TENANT, QUEUE, case.settings)
        await self.repositories.topology.put_queue(TENANT, "another", UNLIMITED)
        if case.ready:
            await enqueue(self.repositories.tasks, case.ready)

    async def statements(self, asked: ReserveRequest) -> dict[str, Mapping[str, object]]:
        """The statements of a reserve that comes after another one."""
        sent: dict[str, Mapping[str, object]] = {}
        await self.repositories.tasks.reserve_many([asked])
        with watched(self.dialect, lambda statement, parameters: sent.update({statement: parameters})):
            await self.repositories.tasks.reserve_many([asked])
        return sent

    async def pages_read(self, statement: str, parameters: Mapping[str, object]) -> int:
        return await pages_read(self.dialect, as_sent_to_postgresql(self.dialect, statement, parameters))


@pytest.fixture(scope="module")
async def held(make_database: MakeDatabase) -> AsyncIterator[Held]:
    url = make_database("postgresql")
    dialect = connect_dialect(url)
    assert isinstance(dialect, PostgreSQL)
    try:
        await migrate(dialect)
        repositories = open_repositories(dialect, timeout_seconds=TIMEOUT_SECONDS)
        async with held_snapshot(url):
            await churn(repositories.tasks)
            await asyncio.sleep(min(CHURNED_LEASE_SECONDS))
            yield Held(dialect, repositories)
    finally:
        await dialect.close()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_reserve_begins_behind_what_was_taken(held: Held, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "LIFE_SECONDS", 3600.0)
    monkeypatch.setattr(starts, "LATE", starts.LATE * 0)
    await held.prepare(case)
    sent = await held.statements(case.asked)
    for statement in case.sent:
        pages = await held.pages_read(statement, sent[statement])
        walked = await held.pages_read(statement, from_the_front(sent[statement]))
        assert pages * 5 < walked, statement


async def test_what_a_rate_holds_back_is_not_looked_for_each_time(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "LIFE_SECONDS", 3600.0)
    await held.prepare(Case(wish(1), 10, [], SLOW))
    await held.repositories.tasks.reserve_many([wish(1)])
    sent = await held.statements(wish(1))
    assert "set_rate_left" not in sent
    assert not {"queues_with_ready", "next_available"} & set(sent)
