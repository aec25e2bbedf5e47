"""Order is exact between replicas, also where one of them remembers where the ready tasks of a queue begin.

Everything here happens by the database's own clock: only then is anything remembered.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from app.domain.commands import DeadLetterFilter, RequeueRequest, Reserved, ReserveRequest, TaskEdit
from app.domain.queue import QueueSettings
from app.domain.task import ReservedTask
from app.repository import starts
from app.repository.dialect import Dialect
from app.repository.factory import Repositories, connect_dialect, open_repository
from app.repository.protocol import Repository
from tests.conformance.steps import (
    LEASE_SECONDS,
    MAX_BYTES,
    QUEUE,
    TIMEOUT_SECONDS,
    WORKER,
    ack_item,
    fail_item,
    new_task,
    release_item,
)
from tests.statements import watched

TYPE = "mail"
LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


@dataclass(frozen=True)
class Kind:
    """What is asked for, and the queue that it is asked of."""

    queues: Sequence[str] = (QUEUE,)
    types: Sequence[str] = ()
    settings: QueueSettings = field(default_factory=QueueSettings)


KINDS = {
    "one queue": Kind(),
    "several queues": Kind(queues=(QUEUE, "another")),
    "a type": Kind(types=(TYPE,)),
    "several types": Kind(types=("", "other", TYPE)),
    "a rate": Kind(settings=QueueSettings(rate_per_second=1000)),
    "a concurrency": Kind(settings=QueueSettings(concurrency_limit=1000)),
}


class Replica:
    """A tenant's calls to one replica, now."""

    def __init__(self, repository: Repository, tenant: str, kind: Kind) -> None:
        self.repository = repository
        self.tenant = tenant
        self.kind = kind

    async def enqueue(self, name: str, *, due_at: datetime | None = None, priority: int = 20) -> None:
        task = replace(new_task(name, priority=priority, type=TYPE), available_at=due_at)
        await self.repository.enqueue_many(self.tenant, [task])

    async def ask(self, limit: int = 1, lease_seconds: float = LEASE_SECONDS) -> Reserved:
        queues, types = self.kind.queues, self.kind.types
        request = ReserveRequest(self.tenant, queues, limit, lease_seconds, MAX_BYTES, types, [], WORKER)
        [reserved] = await self.repository.reserve_many([request])
        return reserved

    async def reserve(self, limit: int = 1, lease_seconds: float = LEASE_SECONDS) -> list[ReservedTask]:
        return list((await self.ask(limit, lease_seconds)).tasks)

    async def next(self) -> str:
        [leased] = await self.reserve()
        return leased.task.id

    async def release(self, leased: ReservedTask) -> None:
        await self.repository.release_many(self.tenant, [release_item(leased)])

    async def edit(self, task_id: str, edit: TaskEdit) -> None:
        await self.repository.edit_task(self.tenant, task_id, edit)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
async def here(repositories: Repositories, tenant: str, kind: Kind) -> Replica:
    """The replica that remembers."""
    await repositories.topology.put_queue(tenant, QUEUE, kind.settings)
    return Replica(repositories.tasks, tenant, kind)


@pytest.fixture
async def there(shared_url: str, tenant: str, kind: Kind) -> AsyncIterator[Replica]:
    """Another replica on the same database."""
    dialect = connect_dialect(shared_url)
    yield Replica(open_repository(dialect, timeout_seconds=TIMEOUT_SECONDS), tenant, kind)
    await dialect.close()


@pytest.fixture
async def first(here: Replica, monkeypatch: pytest.MonkeyPatch) -> ReservedTask:
    """Ten tasks that have long been due, t0 to t9; of the first two, taken here, the first."""
    monkeypatch.setattr(starts, "LIFE_SECONDS", 3600.0)
    for number in range(10):
        await here.enqueue(f"t{number}", due_at=LONG_AGO + timedelta(seconds=number))
    leased, _ = [*await here.reserve(), *await here.reserve()]
    return leased


@pytest.fixture
async def first_of_all(here: Replica, first: ReservedTask) -> ReservedTask:
    """The same, when all of them are taken, and it was seen here that there are no more."""
    assert len(await here.reserve(limit=8)) == 8
    for _ in range(2):
        assert await here.reserve() == []
    return first


async def release(there: Replica, first: ReservedTask) -> None:
    await there.release(first)


async def lose(there: Replica, first: ReservedTask) -> None:
    """Its lease ends, and the other replica finds it, gives it out, and gets it back."""
    await there.release(first)
    [again] = await there.reserve(lease_seconds=0.01)
    await asyncio.sleep(0.02)
    assert again.task.id == "t0"


async def enqueue_overdue(there: Replica, first: ReservedTask) -> None:
    await there.repository.ack_many(there.tenant, [ack_item(first)])
    await there.enqueue("t0", due_at=LONG_AGO)


async def enqueue_urgent(there: Replica, first: ReservedTask) -> None:
    await there.repository.ack_many(there.tenant, [ack_item(first)])
    await there.enqueue("t0", priority=21)


async def make_urgent(there: Replica, first: ReservedTask) -> None:
    await there.repository.ack_many(there.tenant, [ack_item(first)])
    await there.enqueue("t0", priority=-1)
    await there.edit("t0", TaskEdit(priority=30))


async def make_due(there: Replica, first: ReservedTask) -> None:
    await there.repository.ack_many(there.tenant, [ack_item(first)])
    await there.enqueue("t0", due_at=datetime.now(UTC) + timedelta(hours=1))
    await there.edit("t0", TaskEdit(available_at=LONG_AGO))


async def become_due(there: Replica, first: ReservedTask) -> None:
    await there.repository.ack_many(there.tenant, [ack_item(first)])
    await there.enqueue("t0", due_at=datetime.now(UTC) + timedelta(seconds=0.1), priority=21)
    await asyncio.sleep(0.15)


async def requeue_urgent(there: Replica, first: ReservedTask) -> None:
    await there.repository.ack_many(there.tenant, [ack_item(first)])
    await there.enqueue("t0", priority=99)
    [leased] = await there.reserve()
    await there.repository.fail_many(there.tenant, [fail_item(leased)])
    await there.repository.requeue_dead_letters(there.tenant, RequeueRequest(DeadLetterFilter(ids=["t0"])))


Before = Callable[[Replica, ReservedTask], Awaitable[None]]


ANY_WAY = pytest.mark.parametrize(
    "come_before",
    [release, lose, enqueue_overdue, enqueue_urgent, make_urgent, make_due, become_due, requeue_urgent],
)


@ANY_WAY
async def test_what_comes_before_is_next(
    here: Replica, there: Replica, first: ReservedTask, come_before: Before
) -> None:
    await come_before(there, first)
    assert [await here.next() for _ in range(3)] == ["t0", "t2", "t3"]


@ANY_WAY
async def test_what_comes_to_an_empty_queue_is_found_at_once(
    here: Replica, there: Replica, first_of_all: ReservedTask, come_before: Before
) -> None:
    await come_before(there, first_of_all)
    assert await here.next() == "t0"
    assert await here.reserve() == []


async def test_what_is_new_in_an_empty_queue_is_in_order(
    here: Replica, there: Replica, first_of_all: ReservedTask
) -> None:
    for name, priority in {"usual": 20, "low": 1, "urgent": 99}.items():
        await there.enqueue(name, priority=priority)
    assert [await here.next() for _ in range(3)] == ["urgent", "usual", "low"]


async def test_what_is_less_urgent_comes_after_all_others(here: Replica, there: Replica, first: ReservedTask) -> None:
    await there.enqueue("low", due_at=LONG_AGO, priority=1)
    assert [await here.next() for _ in range(9)] == [*(f"t{number}" for number in range(2, 10)), "low"]


async def test_what_its_deadline_ends_is_not_reserved(here: Replica, there: Replica, first: ReservedTask) -> None:
    await there.edit("t3", TaskEdit(expires_at=datetime.now(UTC) + timedelta(seconds=0.05)))
    assert await here.next() == "t2"
    await asyncio.sleep(0.06)
    assert await here.next() == "t4"


async def test_what_was_cancelled_is_passed_over(here: Replica, there: Replica, first: ReservedTask) -> None:
    await there.repository.cancel_task(there.tenant, "t2", force=False)
    assert await here.next() == "t3"


async def test_a_start_is_used_and_given_up_when_something_comes_back(
    here: Replica, there: Replica, first: ReservedTask, shared_dialect: Dialect
) -> None:
    if not shared_dialect.remembers_starts:
        pytest.skip(f"{shared_dialect.name} remembers no starts")
    begun: list[object] = []

    def look(statement: str, parameters: Mapping[str, Any]) -> None:
        if statement == "claim_at_once" and here.kind.settings == QueueSettings():
            begun.append(parameters["start_returns"])
        if statement in ("claim_queue", "claim_lanes"):
            begun.append(parameters["lanes"][-1]["start_returns"])

    with watched(shared_dialect, look):
        await here.next()
        await there.release(first)
        await here.next()
        await here.next()
    # The one after the release was begun in vain, found everything, and was learned from.
    assert begun[0] == begun[1] != begun[2]
    assert None not in begun


async def test_when_the_next_lease_ends_is_told_of_the_leases_given_here(
    here: Replica, first_of_all: ReservedTask
) -> None:
    later = (await here.ask()).next_available_at
    await here.enqueue("soon")
    [leased] = await here.reserve(lease_seconds=5)
    assert later is not None
    assert leased.task.lease_until is not None
    assert (await here.ask()).next_available_at == leased.task.lease_until < later


async def test_what_is_passed_over_is_not_forgotten(here: Replica, first: ReservedTask) -> None:
    queues, types = here.kind.queues, here.kind.types
    request = ReserveRequest(here.tenant, queues, 1, LEASE_SECONDS, MAX_BYTES, types, ["t2"], WORKER)
    [passed_over] = await here.repository.reserve_many([request])
    assert [lease.task.id for lease in passed_over.tasks] == ["t3"]
    assert [await here.next() for _ in range(2)] == ["t2", "t4"]


async def test_what_took_long_to_be_accepted_is_found_at_once(
    here: Replica, there: Replica, first_of_all: ReservedTask, shared_url: str, shared_dialect: Dialect
) -> None:
    if not shared_dialect.remembers_starts:
        pytest.skip(f"{shared_dialect.name} remembers no starts")
    await there.enqueue("later", due_at=datetime.now(UTC) + timedelta(hours=1))
    connection = await asyncpg.connect(shared_url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        # Who wants that key waits, and then gets it.
        await connection.execute(
            "UPDATE mq_tasks SET dedupe_key = 'key' WHERE tenant_id = $1 AND id = 'later'", here.tenant
        )
        late = new_task("late", type=TYPE, dedupe_key="key")
        enqueueing = asyncio.create_task(there.repository.enqueue_many(there.tenant, [late]))
        await asyncio.sleep(0.3)
        assert await here.reserve() == []
        await transaction.rollback()
        await enqueueing
    finally:
        await connection.close()
    assert await here.next() == "late"
