"""Names are exact: what differs in case is different, on databases that would take it for the same."""

import pytest

from app.domain.commands import DeadLetterFilter, TaskFilter
from app.domain.errors import TaskNotFound
from app.domain.task import Status
from app.repository.protocol import Repository
from tests.conformance.steps import Store, at, ids, settled


async def test_ids_differ_by_case(store: Store) -> None:
    await store.enqueue("task", priority=1)
    await store.enqueue("Task", priority=2)
    assert ((await store.get("task")).priority, (await store.get("Task")).priority) == (1, 2)
    with pytest.raises(TaskNotFound):
        await store.get("TASK")


async def test_finished_ids_differ_by_case(store: Store) -> None:
    await store.finish("task")
    await store.bury("Dead")
    for unknown in ("Task", "dead"):
        with pytest.raises(TaskNotFound):
            await store.get(unknown)
    with pytest.raises(TaskNotFound):
        await store.dead_letter("dead")


async def test_queues_differ_by_case(store: Store) -> None:
    await store.enqueue("a", queue="mail")
    assert await store.reserve_ids(queues=["Mail"]) == []
    assert await store.reserve_ids(queues=["Mail", "MAIL"]) == []
    assert ids((await store.list_live(TaskFilter(queue="Mail"))).items) == []
    assert await store.reserve_ids(queues=["Mail", "mail"]) == ["a"]


async def test_keys_are_held_by_queues_that_differ_by_case(store: Store) -> None:
    await store.enqueue("a", queue="mail", dedupe_key="key")
    assert not (await store.enqueue("b", queue="Mail", dedupe_key="key")).existed


async def test_types_differ_by_case(store: Store) -> None:
    await store.enqueue("a", type="mail")
    assert await store.reserve_ids(types=["Mail"]) == []
    assert ids((await store.list_live(TaskFilter(type="Mail"))).items) == []
    assert await store.reserve_ids(types=["mail"]) == ["a"]


async def test_topics_differ_by_case(store: Store) -> None:
    await store.enqueue("a", topic="news")
    assert ids((await store.list_live(TaskFilter(topic="News"))).items) == []
    assert ids((await store.list_live(TaskFilter(topic="news"))).items) == ["a"]


async def test_tenants_differ_by_case(repository: Repository, tenant: str) -> None:
    await Store(repository, tenant).enqueue("a", dedupe_key="key")
    shouting = Store(repository, tenant.upper())
    with pytest.raises(TaskNotFound):
        await shouting.get("a")
    assert await shouting.reserve_ids() == []
    assert not (await shouting.enqueue("a", dedupe_key="key")).existed


async def test_excluded_ids_differ_by_case(store: Store) -> None:
    await store.enqueue("task")
    assert await store.reserve_ids(exclude_ids=["Task"]) == ["task"]


async def test_dead_letters_filters_differ_by_case(store: Store) -> None:
    await store.bury("a", type="mail", topic="news", queue="work")
    assert await store.dead_ids(DeadLetterFilter(queue="Work")) == []
    assert await store.dead_ids(DeadLetterFilter(type="Mail")) == []
    assert await store.dead_ids(DeadLetterFilter(topic="News")) == []
    assert await store.dead_ids(DeadLetterFilter(ids=["A"])) == []


async def test_history_filters_differ_by_case(store: Store) -> None:
    await store.finish("a", queue="work")
    assert ids((await store.list_finished(TaskFilter(Status.DONE, queue="Work"))).items) == []


async def test_attempts_belong_to_the_exact_id(store: Store) -> None:
    settled(await store.nack(await store.lease("task"), delay_seconds=0))
    await store.enqueue("Task", at(1))
    assert await store.attempts("Task", at(1)) == []


async def test_longest_names_are_kept_whole(repository: Repository) -> None:
    tenant, task_id, name = "t" * 64, "i" * 64, "n" * 255
    store = Store(repository, tenant)
    await store.enqueue(task_id, queue=name, topic=name, type=name)
    leased = await store.reserve_one(queues=[name], types=[name], worker_id="w" * 128)
    assert (leased.task.id, leased.task.queue, leased.task.topic, leased.task.type) == (task_id, name, name, name)
    settled(await store.fail(leased))
    dead = (await store.dead_letter(task_id)).task
    assert (dead.id, dead.queue, dead.topic, dead.type, dead.lease_owner) == (task_id, name, name, name, "w" * 128)
    await store.delete_dead_letter(task_id)
