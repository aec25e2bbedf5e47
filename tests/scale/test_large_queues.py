"""A queue beyond what is counted exactly: statistics, turns, purging and deleting are as for any other."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from app.domain.commands import ReserveRequest
from app.domain.task import Status
from app.metrics import Metrics
from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect, open_repositories
from app.repository.schema import migrate
from app.service.batcher import BatchLimits
from app.service.queues import BOUND, QueueService
from app.service.tasks import TaskService
from app.service.waiters import Waiters
from app.service.wakeups import WakeUps
from tests.conformance.steps import MAX_BYTES, Store, new_task
from tests.conformance.topology_steps import Topology
from tests.conftest import DIALECTS, MakeDatabase
from tests.filling import Filler

TENANT = "tenant"
LARGE = BOUND + 20_000


class Large:
    """One process's services on a database in which the queue `large` holds more than is counted exactly."""

    def __init__(self, dialect: Dialect) -> None:
        # Nobody waits for a large queue here, but a noisy machine may take its time to count it.
        repositories = open_repositories(dialect, timeout_seconds=60)
        metrics, waiters = Metrics(10), Waiters()
        wakeups = WakeUps(waiters, repositories.tasks, None, poll_seconds=1)
        self.queues = QueueService(repositories.topology, metrics, wakeups)
        self.tasks = TaskService(repositories.tasks, metrics, waiters, wakeups, BatchLimits(1, 1000, 1000))
        self.maintenance = repositories.maintenance
        self.store = Store(repositories.tasks, TENANT)
        self.topology = Topology(repositories.topology, TENANT)
        self.filler = Filler(dialect, TENANT, datetime.now(UTC) - timedelta(seconds=2 * LARGE))

    async def counts(self, queue: str = "large") -> dict[Status, int]:
        return dict((await self.queues.stats(TENANT, queue)).counts)

    async def reserve(self, *queues: str) -> str:
        """The queue whose task a worker gets."""
        request = ReserveRequest(TENANT, queues, 1, 3600.0, MAX_BYTES, (), (), None)
        reserved = await self.tasks.reserve(request, 0)
        return reserved.tasks[0].task.queue


@pytest.fixture(scope="module", params=DIALECTS)
async def large(request: pytest.FixtureRequest, make_database: MakeDatabase) -> AsyncIterator[Large]:
    dialect = connect_dialect(make_database(request.param))
    try:
        await migrate(dialect)
        large = Large(dialect)
        await large.filler.prepare(LARGE)
        for queue in ("large", "small"):
            await large.topology.put(queue, datetime.now(UTC))
        await large.filler.tasks("large", LARGE)
        yield large
    finally:
        await dialect.close()


async def test_statistics_are_estimates_within_five_percent(large: Large) -> None:
    stats = await large.queues.stats(TENANT, "large")
    assert not stats.exact
    assert stats.counts[Status.READY] == pytest.approx(LARGE, rel=0.05)
    assert sum(stats.ready_by_priority.values()) == pytest.approx(LARGE, rel=0.05)
    assert stats.oldest_ready_seconds is not None
    assert stats.oldest_ready_seconds >= LARGE


async def test_states_with_few_tasks_are_exact_all_the_same(large: Large) -> None:
    before = await large.counts()
    now = datetime.now(UTC)
    await large.store.enqueue_many(new_task("later", queue="large", delay_seconds=3600), now=now)
    await large.store.finish("done", now, queue="large", priority=99)
    after = await large.counts()
    assert after[Status.SCHEDULED] == before[Status.SCHEDULED] + 1
    assert after[Status.DONE] == before[Status.DONE] + 1


async def test_queues_take_turns(large: Large) -> None:
    await large.store.enqueue_many(*(new_task(queue="small") for _ in range(30)), now=datetime.now(UTC))
    served = Counter([await large.reserve("large", "small") for _ in range(40)])
    assert served == {"large": 20, "small": 20}


async def test_purge_takes_all_of_them_away(large: Large) -> None:
    await large.topology.put("purged", datetime.now(UTC))
    await large.filler.tasks("purged", 10_000)
    assert await large.queues.purge(TENANT, "purged") == 10_000
    stats = await large.queues.stats(TENANT, "purged")
    assert (stats.exact, stats.counts[Status.READY]) == (True, 0)


async def test_deleted_queue_starts_empty_and_its_rows_go_in_small_batches(large: Large) -> None:
    await large.topology.put("deleted", datetime.now(UTC))
    await large.filler.tasks("deleted", LARGE)
    assert (await large.counts("deleted"))[Status.READY] > BOUND
    await large.queues.delete(TENANT, "deleted")
    now = datetime.now(UTC)
    await large.topology.put("deleted", now)
    stats = await large.queues.stats(TENANT, "deleted")
    assert (stats.exact, stats.counts[Status.READY]) == (True, 0)
    await large.store.enqueue_many(new_task("new", queue="deleted"), new_task(queue="other"), now=now)
    assert [await large.reserve("deleted", "other") for _ in range(2)] == ["deleted", "other"]
    batches = [await large.maintenance.clear_graves() for _ in range(5)]
    assert all(0 < batch <= 2000 for batch in batches)
