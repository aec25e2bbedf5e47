"""The shortcuts of PostgreSQL look at few pages, also by a plan that was made while the table was empty."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest

from app.repository.postgresql import PostgreSQL
from tests.conformance.steps import ack_item, new_task
from tests.conftest import MakeDatabase
from tests.plans.conftest import NOW, TENANT, Plans, once_found_empty
from tests.plans.recording import Sent, as_sent_to_postgresql, pages_read
from tests.statements import watched

TASKS = 10
# Of every task its row and an entry in each index, here and in the history, each by way of the root.
PAGES_OF_A_TASK = 100


class NotSent(Exception):
    """The statement was seen, and kept from the database."""


@pytest.fixture(scope="module")
async def plans_of_postgresql(make_database: MakeDatabase) -> AsyncIterator[Plans]:
    async with once_found_empty(make_database("postgresql")) as plans:
        yield plans


async def kept_back(dialect: PostgreSQL, call: Callable[[], Awaitable[object]]) -> Sent:
    """The first statement of a call, which is not sent."""
    seen: list[Sent] = []

    def keep(name: str, parameters: Mapping[str, object]) -> None:
        seen.append(as_sent_to_postgresql(dialect, name, parameters))
        raise NotSent

    with watched(dialect, keep), pytest.raises(NotSent):
        await call()
    return seen[0]


@pytest.mark.parametrize("verb", ["enqueue", "reserve", "ack"])
async def test_a_shortcut_looks_at_few_pages(plans_of_postgresql: Plans, verb: str) -> None:
    plans = plans_of_postgresql
    assert isinstance(plans.dialect, PostgreSQL)
    tasks = [new_task(queue="big") for _ in range(TASKS)]
    items = [ack_item(leased) for leased in (await plans.store.reserve(NOW, queues=["big"], limit=TASKS)).tasks]
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "enqueue": lambda: plans.store.enqueue_many(*tasks, now=NOW),
        "reserve": lambda: plans.store.reserve(NOW, queues=["big"], limit=TASKS),
        "ack": lambda: plans.store.repository.ack_many(TENANT, items, NOW),
    }
    sent = await kept_back(plans.dialect, calls[verb])
    assert sent.is_planned_once
    assert await pages_read(plans.dialect, sent) < TASKS * PAGES_OF_A_TASK
