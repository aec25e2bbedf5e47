"""Rows that somebody changes at the very moment at which others lease or ack them."""

import asyncio
import random
from collections import Counter

from tests.concurrency.fleet import Fleet, Json, Reply
from tests.concurrency.tables import Tables

TASKS = 150
AT_ONCE = 10
QUEUE = "work"


async def test_tasks_are_delivered_once_while_they_are_edited(fleet: Fleet, tables: Tables) -> None:
    """An edit is refused once its task is leased, and otherwise takes effect; neither hides or doubles a task."""
    tasks = await fleet.enqueue_many([{"queue": QUEUE} for _ in range(TASKS)])
    delivered: list[Json] = []
    edits, _ = await asyncio.gather(edit_all(fleet, tasks), reserve_all(fleet, delivered))
    assert not fleet.failures
    assert Counter(task["id"] for task in delivered) == Counter(task["id"] for task in tasks)
    assert {reply.code for reply in edits if not reply.ok} <= {"task_leased"}
    seen = {task["id"]: task["priority"] for task in delivered}
    edited = {reply.body["id"]: reply.body["priority"] for reply in edits if reply.ok}
    assert edited == {task_id: seen[task_id] for task_id in edited}
    assert await tables.broken() == []


async def test_acks_take_effect_while_their_leases_are_extended(fleet: Fleet, tables: Tables) -> None:
    await fleet.enqueue_many([{"queue": QUEUE} for _ in range(TASKS)])
    leased = (await fleet.reserve(queues=[QUEUE], limit=TASKS, lease_seconds=600))["tasks"]
    for start in range(0, TASKS, AT_ONCE):
        await asyncio.gather(*(extend_and_ack(fleet, task) for task in leased[start : start + AT_ONCE]))
    assert not fleet.failures
    assert (await tables.history("done")).keys() == {task["id"] for task in leased}
    assert await tables.live() == {}
    assert await tables.broken() == []


async def edit_all(fleet: Fleet, tasks: list[Json]) -> list[Reply]:
    """Gives every task another priority, a few tasks at once."""
    replies: list[Reply] = []
    for start in range(0, len(tasks), AT_ONCE):
        some = tasks[start : start + AT_ONCE]
        replies += await asyncio.gather(
            *(fleet.call("PATCH", f"/v1/tasks/{task['id']}", {"priority": random.randrange(1000)}) for task in some)
        )
    return replies


async def reserve_all(fleet: Fleet, delivered: list[Json]) -> None:
    while len(delivered) < TASKS:
        replies = await asyncio.gather(*(fleet.reserve(queues=[QUEUE], limit=3, lease_seconds=600) for _ in range(3)))
        delivered += [task for reply in replies for task in reply["tasks"]]


async def extend_and_ack(fleet: Fleet, task: Json) -> None:
    """The ack is sent while extends of its lease are under way."""
    extends = [fleet.settle("extend", task, replica, lease_seconds=600) for replica in (0, 1)]
    ack = fleet.settle("ack", task)
    *extended, acked = await asyncio.gather(*extends, ack)
    assert acked.ok
    assert {reply.code for reply in extended if not reply.ok} <= {"task_not_leased", "task_not_found"}
