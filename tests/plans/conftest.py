"""A database of each dialect with a backlog in it, and the calls whose statements are looked at."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from app.domain.commands import TaskFilter
from app.repository.dialect import Dialect
from app.repository.factory import Repositories, connect_dialect, open_repositories
from app.repository.protocol import MaintenanceRepository
from app.repository.schema import migrate
from tests.conformance.steps import TIMEOUT_SECONDS, Store, new_task, settled
from tests.conformance.topology_steps import Topology
from tests.conftest import DIALECTS, MakeDatabase
from tests.filling import Filler
from tests.plans.recording import Sent, explain, recorded, rows_read

TENANT = "tenant"
BACKLOG = 20_000
FEW = 200
SMALL = 30
AT_ONCE = 1000
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
# Everything was filled in long ago, a second apart; what is scheduled or leased comes long after.
START = NOW - timedelta(seconds=3 * BACKLOG)


class Looked:
    """The statements of a call, explained."""

    def __init__(self, dialect: Dialect, sent: list[Sent]) -> None:
        self._dialect = dialect
        self._sent = sent

    @property
    def about_large_tables(self) -> list[Sent]:
        return [sent for sent in self._sent if sent.about_large_tables]

    async def check(self, *, may_sort: bool = False) -> None:
        """No large table is read from end to end, and no backlog is sorted."""
        assert self.about_large_tables, "no statement was seen"
        plans = [plan for sent in self.about_large_tables for plan in await explain(self._dialect, sent)]
        found = [(plan.sql, step) for plan in plans for step in (*plan.scans(), *([] if may_sort else plan.sorts()))]
        assert not found, found

    async def rows_read(self) -> int:
        return await rows_read(self._dialect, self.about_large_tables)


class Plans:
    """The repositories on a database with a backlog."""

    def __init__(self, filler: Filler, repositories: Repositories) -> None:
        self.filler = filler
        self.dialect = filler.dialect
        self.store = Store(repositories.tasks, TENANT)
        self.topology = Topology(repositories.topology, TENANT)
        self.maintenance: MaintenanceRepository = repositories.maintenance

    @contextmanager
    def looked_at(self) -> Iterator[Looked]:
        """What is sent to the database meanwhile."""
        with recorded(self.dialect) as sent:
            yield Looked(self.dialect, sent)


@pytest.fixture(scope="session", params=DIALECTS)
async def plans(request: pytest.FixtureRequest, make_database: MakeDatabase) -> AsyncIterator[Plans]:
    """One database for the whole run: what the tests change is little beside what is there."""
    dialect = connect_dialect(make_database(request.param))
    await migrate(dialect)
    repositories = open_repositories(dialect, timeout_seconds=TIMEOUT_SECONDS)
    try:
        plans = Plans(Filler(dialect, TENANT, START), repositories)
        await fill(plans.filler, plans.topology)
        # The first list looks at the graves that are due; from then on they are not due for long.
        await plans.store.list_live(TaskFilter(), limit=1, now=NOW)
        yield plans
    finally:
        await dialect.close()


async def fill(filler: Filler, topology: Topology) -> None:
    await filler.prepare(3 * BACKLOG)
    for queue in ("big", "small", "tiny", "limited", *(f"queue-{number}" for number in range(10))):
        await topology.put(queue, START)
    await topology.patch("limited", START, concurrency_limit=1000, rate_per_second=1000)
    later = filler.after("i + 1000000")
    await filler.tasks("big", BACKLOG)
    await filler.tasks("big", FEW, type="'rare'", priority="10")
    await filler.tasks("big", FEW, expires_at=later, dedupe_key=filler.named("key"))
    await filler.tasks("big", BACKLOG // 4, "scheduled", available_at=later)
    await filler.tasks("big", BACKLOG // 10, "leased")
    for number in range(10):
        await filler.tasks(f"queue-{number}", BACKLOG // 20)
    await filler.tasks("limited", FEW)
    await filler.tasks("tiny", SMALL)
    await filler.tasks("small", SMALL)
    await filler.tasks("small", SMALL, "scheduled", available_at=later)
    await filler.tasks("small", SMALL, "leased")
    await filler.attempts("big", 3 * BACKLOG)
    for status in ("done", "expired", "cancelled"):
        await filler.history("small", SMALL, status)
        await filler.history("big", BACKLOG // (1 if status == "done" else 4), status)
    await filler.dead_letters("small", SMALL)
    await filler.dead_letters("big", BACKLOG)
    await filler.graves(BACKLOG // 20)
    await filler.analyze()


@asynccontextmanager
async def once_found_empty(url: str) -> AsyncIterator[Plans]:
    """A backlog in tables that were found empty, but for the room they take: so looks a queue that was worked off."""
    dialect = connect_dialect(url)
    await migrate(dialect)
    repositories = open_repositories(dialect, timeout_seconds=TIMEOUT_SECONDS)
    try:
        plans = Plans(Filler(dialect, TENANT, START), repositories)
        await plans.filler.prepare(BACKLOG)
        for queue in ("big", "limited"):
            await plans.topology.put(queue, START)
        await plans.topology.patch("limited", START, concurrency_limit=1000, rate_per_second=1000)
        await plans.store.enqueue_many(*(new_task(queue="big") for _ in range(AT_ONCE)), now=NOW)
        for leased in (await plans.store.reserve(NOW, queues=["big"], limit=AT_ONCE)).tasks:
            settled(await plans.store.ack(leased, NOW))
        await _look_at_tables(dialect)
        await plans.filler.tasks("big", BACKLOG)
        await plans.filler.tasks("limited", BACKLOG)
        yield plans
    finally:
        await dialect.close()


async def _look_at_tables(dialect: Dialect) -> None:
    """Without giving back their room."""
    async with dialect.connect(write=True) as connection:
        await connection.exec_driver_sql("ANALYZE TABLE mq_tasks" if dialect.name == "mysql" else "ANALYZE mq_tasks")
        await connection.commit()
