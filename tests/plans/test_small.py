"""A table that is small: nobody reads, and locks, the rows of others because that would be quicker."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from app.domain.commands import AckItem
from app.domain.lease_token import lease_token_hash
from app.repository.factory import connect_dialect, open_repositories
from app.repository.schema import migrate
from tests.conformance.steps import new_task
from tests.conftest import DIALECTS, MakeDatabase
from tests.filling import Filler
from tests.plans.conftest import NOW, START, TENANT, Plans

TIMEOUT_SECONDS = 30.0
PROMPT_SECONDS = 5.0
ALL = 300
SOME = 100


@pytest.fixture(scope="module", params=DIALECTS)
async def small(request: pytest.FixtureRequest, make_database: MakeDatabase) -> AsyncIterator[Plans]:
    """So few rows that a batch is a good part of them."""
    dialect = connect_dialect(make_database(request.param))
    await migrate(dialect)
    plans = Plans(Filler(dialect, TENANT, START), open_repositories(dialect, timeout_seconds=TIMEOUT_SECONDS))
    await plans.store.enqueue_many(*(new_task() for _ in range(ALL)), now=NOW)
    yield plans
    await dialect.close()


async def test_reserve_and_ack(small: Plans) -> None:
    with small.looked_at() as looked:
        items = await reserve_some(small)
        assert len(await small.store.repository.ack_many(TENANT, items, NOW)) == SOME
    await looked.check()


async def test_an_ack_does_not_wait_for_the_task_behind(small: Plans) -> None:
    if small.dialect.writers == 1:
        pytest.skip("one writer waits for any other")
    items = await reserve_some(small)
    async with small.dialect.connect(write=True) as other:
        await other.execute(text("SELECT seq FROM mq_tasks WHERE status = 'ready' FOR UPDATE"))
        async with asyncio.timeout(PROMPT_SECONDS):
            assert len(await small.store.repository.ack_many(TENANT, items, NOW)) == SOME
        await other.rollback()


async def reserve_some(small: Plans) -> list[AckItem]:
    """The acks of as many as a batch holds."""
    leased = (await small.store.reserve(NOW, limit=SOME)).tasks
    assert len(leased) == SOME
    return [AckItem(lease.task.id, lease_token_hash(lease.lease_token)) for lease in leased]
