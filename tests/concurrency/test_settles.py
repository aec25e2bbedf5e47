"""Several calls want to end the same lease at the same moment: one of them does."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from sqlalchemy import RowMapping

from tests.concurrency.fleet import Fleet, Json, Reply
from tests.concurrency.tables import Tables

TASKS = 48
AT_ONCE = 6
QUEUE = "work"
BODIES: dict[str, Json] = {
    "ack": {"result": "mine"},
    "nack": {"error": "not yet", "delay_seconds": 600},
    "fail": {"reason": "broken"},
    "release": {},
}
# What a repeat of the winner is told: an ack and a fail are successes again.
REPEATABLE = {"ack", "fail"}
STATUS_AFTER = {"ack": "done", "nack": "scheduled", "fail": "dead", "release": "ready"}
REASON_AFTER: dict[str, list[str | None]] = {"ack": [None], "nack": ["not yet"], "fail": ["broken"], "release": []}


@pytest.fixture
async def leased(fleet: Fleet) -> list[Json]:
    """Tasks, each under a lease that lasts."""
    await fleet.enqueue_many([{"queue": QUEUE} for _ in range(TASKS)])
    tasks: list[Json] = (await fleet.reserve(queues=[QUEUE], limit=TASKS, lease_seconds=600))["tasks"]
    assert len(tasks) == TASKS
    return tasks


async def test_one_of_several_settles_takes_effect(fleet: Fleet, leased: list[Json], tables: Tables) -> None:
    contests = await contest_all(fleet, leased, tuple(BODIES))
    assert not fleet.failures
    log = await tables.attempts()
    for task, contest in zip(leased, contests, strict=True):
        winner = winner_of(contest)
        seen = (await fleet.get(f"/v1/tasks/{task['id']}")).body
        assert (seen["status"], seen["attempts"]) == (STATUS_AFTER[winner], 0 if winner == "release" else 1)
        assert [row["reason"] for row in log[task["id"]]] == REASON_AFTER[winner]
    assert await tables.broken() == []


async def test_one_of_settle_and_cancel_takes_effect(fleet: Fleet, leased: list[Json], tables: Tables) -> None:
    """A cancel by force needs no token: it also takes a task that a nack or a release gave back before."""
    contests = await contest_all(fleet, leased, (*BODIES, "cancel"))
    assert not fleet.failures
    log, cancelled = await tables.attempts(), await tables.history("cancelled")
    for task, contest in zip(leased, contests, strict=True):
        seen = (await fleet.get(f"/v1/tasks/{task['id']}")).body
        assert (seen["status"] == "cancelled") == (task["id"] in cancelled)
        check_cancel(seen, contest, log[task["id"]])
    assert await tables.broken() == []


def check_cancel(seen: Json, contest: "Contest", log: Sequence[RowMapping]) -> None:
    cancels = Counter(reply.code if not reply.ok else "ok" for verb, reply in contest if verb == "cancel")
    settles = [(verb, reply) for verb, reply in contest if verb != "cancel"]
    winner = winner_of(settles) if any(reply.ok for _, reply in settles) else "cancel"
    if winner in REPEATABLE:
        assert cancels == {"task_finished": 2}
        assert seen["status"] == STATUS_AFTER[winner]
    else:
        assert cancels == {"ok": 1, "task_finished": 1}
        assert seen["status"] == "cancelled"
    reasons = REASON_AFTER.get(winner, ["cancelled"])
    assert [row["reason"] for row in log] == reasons


Contest = list[tuple[str, Reply]]


async def contest_all(fleet: Fleet, tasks: Sequence[Json], verbs: Sequence[str]) -> list[Contest]:
    """All verbs on each task, from both replicas at the same moment; a few tasks at once."""
    contests: list[Contest] = []
    for start in range(0, len(tasks), AT_ONCE):
        contests += await asyncio.gather(*(contest(fleet, task, verbs) for task in tasks[start : start + AT_ONCE]))
    return contests


async def contest(fleet: Fleet, task: Json, verbs: Sequence[str]) -> Contest:
    calls = [(verb, replica) for verb in verbs for replica in (0, 1)]
    random.shuffle(calls)
    replies = await asyncio.gather(*(settle(fleet, task, verb, replica) for verb, replica in calls))
    return [(verb, reply) for (verb, _), reply in zip(calls, replies, strict=True)]


async def settle(fleet: Fleet, task: Json, verb: str, replica: int) -> Reply:
    if verb == "cancel":
        return await fleet.call("DELETE", f"/v1/tasks/{task['id']}?force=true", None, replica)
    return await fleet.settle(verb, task, replica, **BODIES[verb])


def winner_of(contest: Contest) -> str:
    """The verb that took effect, with its repeat told what it should be, and all others told no."""
    successes = Counter(verb for verb, reply in contest if reply.ok)
    assert len(successes) == 1, successes
    [(winner, times)] = successes.items()
    assert times == (2 if winner in REPEATABLE else 1)
    assert {reply.code for _, reply in contest if not reply.ok} == {"task_not_leased"}
    return winner
