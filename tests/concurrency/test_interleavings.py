"""Moments inside a transaction at which another replica is faster."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import httpx
import pytest

from app.domain.commands import Extended, ExtendItem, FailItem, ReserveRequest, Settled
from app.domain.errors import TaskFinished, TaskNotFound
from app.domain.lease_token import lease_token_hash
from app.domain.queue import QueueSettings
from app.domain.task import Status
from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect, open_repositories
from app.repository.protocol import Repository, TopologyRepository
from tests.concurrency.fleet import Fleet, Json
from tests.concurrency.interleaving import before_statement
from tests.concurrency.racing import TIMEOUT_SECONDS
from tests.service import Service

QUEUE = "work"
SHORT_LEASE_SECONDS = 0.5


@dataclass(frozen=True)
class SlowReplica:
    """A replica in the test's own process, to be interrupted."""

    dialect: Dialect
    repository: Repository
    topology: TopologyRepository


@pytest.fixture
async def slow(shared_url: str) -> AsyncIterator[SlowReplica]:
    dialect = connect_dialect(shared_url)
    repositories = open_repositories(dialect, timeout_seconds=TIMEOUT_SECONDS)
    yield SlowReplica(dialect, repositories.tasks, repositories.topology)
    await repositories.tasks.close()


@pytest.fixture
def fast(replicas: Sequence[Service], tenant: str) -> Iterator[httpx.Client]:
    """A caller of another replica that waits for its reply with the whole process."""
    headers = {"X-Tenant-Id": tenant}
    with httpx.Client(base_url=replicas[0].url, headers=headers, timeout=30, trust_env=False) as client:
        yield client


def one_writer_at_a_time(slow: SlowReplica) -> None:
    """Skips the test where nobody can change anything while the slow replica does."""
    if slow.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time: nothing happens meanwhile")


async def lease(fleet: Fleet, lease_seconds: float) -> Json:
    await fleet.enqueue_many([{"queue": QUEUE}])
    [task] = (await fleet.reserve(queues=[QUEUE], lease_seconds=lease_seconds))["tasks"]
    leased: Json = task
    return leased


async def die(fleet: Fleet) -> Json:
    task = await lease(fleet, 600)
    assert (await fleet.settle("fail", task, reason="broken")).ok
    return task


def requeue_meanwhile(slow: SlowReplica, fast: httpx.Client, task: Json) -> None:
    """A dead task goes back to its queue after the slow replica looked for it there, and before it looks elsewhere."""
    path = f"/v1/dlq/{task['id']}/requeue"
    before_statement(slow.dialect, "mq_task_history", lambda: fast.post(path).raise_for_status())


async def test_a_task_is_found_while_it_is_requeued(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    task = await die(fleet)
    requeue_meanwhile(slow, fast, task)
    assert (await slow.repository.get_task(tenant, task["id"])).status in {Status.DEAD, Status.READY}


async def test_a_repeated_fail_is_a_success_while_the_task_is_requeued(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    one_writer_at_a_time(slow)
    task = await die(fleet)
    requeue_meanwhile(slow, fast, task)
    item = FailItem(task["id"], lease_token_hash(task["lease_token"]), "broken")
    [outcome] = await slow.repository.fail_many(tenant, [item])
    assert isinstance(outcome, Settled), outcome


async def test_a_task_is_cancelled_or_finished_while_it_is_requeued(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    one_writer_at_a_time(slow)
    task = await die(fleet)
    requeue_meanwhile(slow, fast, task)
    with suppress(TaskFinished):
        assert await slow.repository.cancel_task(tenant, task["id"], force=False) == QUEUE


async def test_an_attempt_is_listed_while_it_ends(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    task = await lease(fleet, 600)
    path, body = f"/v1/tasks/{task['id']}/ack", {"lease_token": task["lease_token"]}
    before_statement(
        slow.dialect, "mq_tasks", lambda: fast.post(path, json=body).raise_for_status(), after="mq_task_attempts"
    )
    attempts = (await slow.repository.list_attempts(tenant, task["id"], 10, None)).items
    assert [attempt.attempt_no for attempt in attempts] == [1]


async def test_a_lease_begins_after_the_end_of_the_one_before(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    """A reserve has looked at the clock, and the lease that then ran out was taken back by somebody else."""
    one_writer_at_a_time(slow)
    first = await lease(fleet, SHORT_LEASE_SECONDS)

    def take_back() -> None:
        time.sleep(SHORT_LEASE_SECONDS)
        assert fast.get("/v1/tasks?status=dead").is_success

    before_statement(slow.dialect, "mq_tasks", take_back)
    request = ReserveRequest(tenant, [QUEUE], limit=1, lease_seconds=30, max_bytes=1)
    [reserved] = await slow.repository.reserve_many([request])
    assert [leased.task.id for leased in reserved.tasks] == [first["id"]]
    assert reserved.server_time >= datetime.fromisoformat(first["lease_until"])
    attempts = (await slow.repository.list_attempts(tenant, first["id"], 10, None)).items
    assert attempts[0].finished_at is not None
    assert attempts[0].finished_at <= attempts[1].started_at


async def test_a_limit_holds_while_a_lease_is_extended_at_its_end(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    """An extend has found its lease running, and before it is written the lease would have ended."""
    one_writer_at_a_time(slow)
    await slow.topology.put_queue(tenant, QUEUE, QueueSettings(concurrency_limit=1))
    await fleet.enqueue_many([{"queue": QUEUE}])
    first = await lease(fleet, SHORT_LEASE_SECONDS)
    others: list[Json] = []

    def reserve() -> None:
        time.sleep(SHORT_LEASE_SECONDS)
        others.append(fast.post("/v1/reserve", json={"queues": [QUEUE]}).json())

    before_statement(slow.dialect, "The leases end that long from now", reserve)
    item = ExtendItem(first["id"], lease_token_hash(first["lease_token"]), 30)
    [outcome] = await slow.repository.extend_many(tenant, [item])
    assert isinstance(outcome, Extended)
    assert not others[0].get("tasks")


async def test_a_task_is_explained_while_its_queue_is_deleted(
    fleet: Fleet, slow: SlowReplica, fast: httpx.Client, tenant: str
) -> None:
    one_writer_at_a_time(slow)
    await slow.topology.put_queue(tenant, QUEUE, QueueSettings())
    [task] = await fleet.enqueue_many([{"queue": QUEUE}])
    before_statement(
        slow.dialect, "The one instant", lambda: fast.delete(f"/v1/queues/{QUEUE}").raise_for_status(), after="mq_tasks"
    )
    with pytest.raises(TaskNotFound):
        await slow.topology.explain_task(tenant, task["id"], 10)
