"""Lists of a few tasks among very many others: found by other ways than a walk along all of them, and the same."""

import pytest

from app.domain.commands import LiveKey, TaskFilter
from app.domain.task import Status
from app.repository.dialect import Dialect
from tests.conformance.steps import Store, at, ids, new_task
from tests.conformance.topology_steps import Topology, fill

LIMIT = 2
# More than a list walks along for a page of that size.
MANY = 300


async def pages(store: Store, task_filter: TaskFilter, now: float = 0.0) -> list[list[str]]:
    """The ids on each page, to the last one."""
    found: list[list[str]] = []
    after: LiveKey | None = None
    while not found or after is not None:
        page = await store.list_live(task_filter, limit=LIMIT, after=after, now=at(now))
        found.append(ids(page.items))
        after = page.next_key
    return found


async def listed(store: Store, now: float = 0.0, /, **fields: str) -> list[str]:
    """All that a list shows, in its order."""
    status = Status(fields["status"]) if "status" in fields else None
    task_filter = TaskFilter(status, fields.get("queue"), fields.get("type"), fields.get("topic"))
    return [task_id for page in await pages(store, task_filter, now) for task_id in page]


async def scatter(store: Store, *names: str, queue: str = "few", **fields: str) -> None:
    """Tasks of these ids, each behind very many of another queue."""
    for name in names:
        await fill(store, MANY, queue="many")
        await store.enqueue_many(new_task(name, queue=queue, type=fields.get("type", "")))
    await fill(store, MANY, queue="many")


async def test_queue(store: Store) -> None:
    await scatter(store, "c", "a", "b")
    assert await pages(store, TaskFilter(queue="few")) == [["c", "a"], ["b"]]
    assert len(await listed(store, queue="many")) == 4 * MANY
    assert len(await listed(store)) == 4 * MANY + 3


async def test_queue_with_nothing(store: Store) -> None:
    await fill(store, MANY, queue="many")
    assert await pages(store, TaskFilter(queue="never")) == [[]]


@pytest.mark.parametrize("queue", [{"queue": "few"}, {}], ids=["queue", "tenant"])
async def test_every_state(store: Store, queue: dict[str, str]) -> None:
    await fill(store, MANY, queue="many")
    await store.lease("leased", queue="few")
    await store.enqueue("scheduled", queue="few", delay_seconds=60)
    await fill(store, MANY, queue="many")
    await store.enqueue("ready", queue="few", priority=-1)
    assert await listed(store, status="leased", **queue) == ["leased"]
    assert await listed(store, status="scheduled", **queue) == ["scheduled"]
    assert await listed(store, queue="few") == ["leased", "scheduled", "ready"]
    assert await listed(store, status="ready", queue="few") == ["ready"]


async def test_what_time_has_changed_is_listed_as_it_is(store: Store) -> None:
    await fill(store, MANY, queue="many")
    await store.lease("lost", queue="few")
    await store.lease("exhausted", queue="few", max_attempts=1)
    await store.enqueue("due", queue="few", delay_seconds=10)
    await store.enqueue("expired", queue="few", ttl_seconds=20)
    await fill(store, MANY, queue="many")
    assert await listed(store, 30, queue="few", status="ready") == ["lost", "due"]
    assert await listed(store, 30, queue="few") == ["lost", "due"]
    assert await listed(store, 30, queue="few", status="leased") == []


async def test_type_and_topic(store: Store, topology: Topology) -> None:
    await scatter(store, "x", "y", queue="many", type="rare")
    assert await listed(store, type="rare") == ["x", "y"]
    assert await listed(store, type="rare", queue="many") == ["x", "y"]
    assert await listed(store, type="rare", queue="few") == []
    await topology.subscribe("news", "reader")
    published = await topology.publish("news")
    await fill(store, MANY, queue="many")
    assert await listed(store, topic="news") == ids(published.deliveries)


async def test_queue_that_is_gone(store: Store, topology: Topology) -> None:
    """What waited in it is gone; who had a task of it has it still."""
    await fill(store, MANY, queue="many")
    await topology.put("few")
    await store.lease("leased", queue="few")
    await store.enqueue("waiting", queue="few")
    await topology.delete("few")
    await store.enqueue("new", queue="few")
    await fill(store, MANY, queue="many")
    assert await listed(store, queue="few") == ["leased", "new"]
    assert await listed(store, status="leased") == ["leased"]
    assert await listed(store, 30, queue="few") == ["new"]


async def test_exclusive_queue_that_ended(store: Store, topology: Topology) -> None:
    await fill(store, MANY, queue="many")
    await topology.put("few", exclusive=True, keep_alive_seconds=10)
    await store.enqueue("waiting", queue="few")
    await fill(store, MANY, queue="many")
    assert await listed(store, 9, queue="few") == ["waiting"]
    assert await listed(store, 10, queue="few") == []


async def test_other_tenants(store: Store, other_store: Store) -> None:
    await scatter(other_store, "theirs")
    await store.enqueue("mine", queue="few")
    await fill(other_store, MANY, queue="many")
    assert await listed(store) == ["mine"]
    assert await listed(store, queue="few") == ["mine"]
    assert await listed(other_store, queue="few") == ["theirs"]


async def test_tombstones_are_not_listed(store: Store) -> None:
    await fill(store, MANY, queue="many")
    await store.finish(queue="few", dedupe_key="key", dedupe_seconds=3600)
    await fill(store, MANY, queue="many")
    assert await listed(store, queue="few") == []


async def test_what_stays_put_is_seen_once_while_others_come_and_go(store: Store) -> None:
    await scatter(store, *(f"task-{number}" for number in range(6)))
    first = await store.list_live(TaskFilter(queue="few"), limit=LIMIT)
    await store.cancel("task-1")
    await store.cancel("task-2")
    await store.enqueue("late", queue="few", priority=99)
    rest: list[str] = []
    after = first.next_key
    while after is not None:
        page = await store.list_live(TaskFilter(queue="few"), limit=LIMIT, after=after)
        rest += ids(page.items)
        after = page.next_key
    assert ids(first.items) == ["task-0", "task-1"]
    assert rest == ["task-3", "task-4", "task-5", "late"]


async def test_a_task_that_is_done_between_two_looks_is_not_shown(shared_dialect: Dialect, store: Store) -> None:
    """Its row may be there still, for the sake of its dedupe key."""
    await store.finish("a", dedupe_key="key", dedupe_seconds=60)
    async with shared_dialect.transaction(write=False) as connection:
        span = await connection.fetch("span_of_tasks", {"after_seq": 0})
        seqs = list(range(span[0]["last_seq"] - MANY, span[0]["last_seq"] + 1))
        rows = await connection.fetch("read_live", {"seqs": seqs, "now": at(0.0)})
        await connection.rollback()
    assert [row["id"] for row in rows if row["tenant_id"] == store.tenant] == []
