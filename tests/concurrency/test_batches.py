"""Batches of the same tasks in opposite orders: they wait for each other, and no deadlock is ever seen."""

import asyncio
import random
from collections import Counter

import pytest

from tests.concurrency.fleet import Fleet, Json
from tests.concurrency.tables import Tables

TASKS = 100
ROUNDS = 5
QUEUE = "work"


@pytest.fixture
async def leased(fleet: Fleet) -> list[Json]:
    """Tasks, each under a lease that lasts."""
    await fleet.enqueue_many([{"queue": QUEUE, "max_attempts": 0} for _ in range(TASKS)])
    return await lease_all(fleet)


async def lease_all(fleet: Fleet) -> list[Json]:
    tasks: list[Json] = (await fleet.reserve(queues=[QUEUE], limit=TASKS, lease_seconds=600))["tasks"]
    assert len(tasks) == TASKS
    return tasks


async def crossed(fleet: Fleet, verb: str, tasks: list[Json], **fields: object) -> list[tuple[bool, bool]]:
    """The same batch at both replicas, forwards at one and backwards at the other; for each task who was told yes."""
    forwards, backwards = await asyncio.gather(
        fleet.settle_many(verb, tasks, 0, **fields), fleet.settle_many(verb, tasks[::-1], 1, **fields)
    )
    return [(one["ok"], other["ok"]) for one, other in zip(forwards, backwards[::-1], strict=True)]


async def test_extends_in_opposite_orders(fleet: Fleet, leased: list[Json]) -> None:
    batches = [crossed(fleet, "extend", leased, lease_seconds=600) for _ in range(ROUNDS)]
    outcomes = await asyncio.gather(*batches)
    assert not fleet.failures
    assert {outcome for batch in outcomes for outcome in batch} == {(True, True)}


async def test_nacks_in_opposite_orders(fleet: Fleet, leased: list[Json], tables: Tables) -> None:
    for _ in range(ROUNDS):
        outcomes = await crossed(fleet, "nack", leased, delay_seconds=0)
        assert set(outcomes) <= {(True, False), (False, True)}
        leased = await lease_all(fleet)
    assert not fleet.failures
    numbers = {tuple(row["attempt_no"] for row in rows) for rows in (await tables.attempts()).values()}
    assert numbers == {tuple(range(1, ROUNDS + 1))}


@pytest.mark.parametrize("verb", ["ack", "fail"])
async def test_ends_in_opposite_orders(verb: str, fleet: Fleet, leased: list[Json], tables: Tables) -> None:
    fields = {"reason": "broken"} if verb == "fail" else {}
    outcomes = await asyncio.gather(*(crossed(fleet, verb, leased, **fields) for _ in range(ROUNDS)))
    assert not fleet.failures
    assert {outcome for batch in outcomes for outcome in batch} == {(True, True)}
    ended = await (tables.dead() if verb == "fail" else tables.history("done"))
    assert set(ended) == {task["id"] for task in leased}
    assert {len(rows) for rows in (await tables.attempts()).values()} == {1}


async def test_different_ends_in_different_orders(fleet: Fleet, leased: list[Json], tables: Tables) -> None:
    """Each task goes with one of the batches, whichever has it first."""
    verbs: dict[str, Json] = {
        "ack": {},
        "fail": {"reason": "broken"},
        "nack": {"delay_seconds": 600},
        "extend": {"lease_seconds": 600},
    }
    calls = [(verb, random.sample(leased, TASKS), replica) for verb in verbs for replica in (0, 1)]
    batches = await asyncio.gather(
        *(fleet.settle_many(verb, tasks, replica, **verbs[verb]) for verb, tasks, replica in calls)
    )
    assert not fleet.failures
    ended: dict[str, set[str]] = {task["id"]: set() for task in leased}
    for (verb, _, _), results in zip(calls, batches, strict=True):
        for result in results:
            ended[result["id"]] |= {verb} if result["ok"] and verb != "extend" else set()
    assert {len(verbs) for verbs in ended.values()} == {1}
    where = {"ack": await tables.history("done"), "fail": await tables.dead(), "nack": await tables.live()}
    for verb, tasks in where.items():
        assert set(tasks) == {task_id for task_id, how in ended.items() if how == {verb}}
    assert await tables.broken() == []


async def test_enqueues_of_the_same_keys_in_opposite_orders(fleet: Fleet, tables: Tables) -> None:
    for number in range(2 * ROUNDS):
        tasks: list[Json] = [{"queue": QUEUE, "dedupe_key": f"{number}-{key}"} for key in range(2 * TASKS)]
        batches = await asyncio.gather(
            *(fleet.enqueue_many(tasks[:: 1 if replica else -1], replica) for replica in (0, 1, 0, 1))
        )
        assert not fleet.failures
        aligned = [results[:: 1 if replica else -1] for replica, results in zip((0, 1, 0, 1), batches, strict=True)]
        for results in zip(*aligned, strict=True):
            assert len({result["id"] for result in results}) == 1
            assert Counter(result["existed"] for result in results) == {False: 1, True: 3}
    assert len(await tables.key_holders()) == 2 * ROUNDS * 2 * TASKS


async def test_enqueues_of_the_same_ids_in_opposite_orders(fleet: Fleet, tables: Tables) -> None:
    """One batch has its way, and of the other not a single task is there."""
    for number in range(ROUNDS):
        batches = [
            [{"queue": QUEUE, "payload": replica, "id": f"{number}-{task}"} for task in range(TASKS)]
            for replica in (0, 1)
        ]
        replies = await asyncio.gather(
            fleet.post("/v1/tasks/batch", {"tasks": batches[0]}, 0),
            fleet.post("/v1/tasks/batch", {"tasks": batches[1][::-1]}, 1),
        )
        assert not fleet.failures
        assert Counter(reply.code for reply in replies) == {"": 1, "task_exists": 1}
    payloads = Counter((row["id"].split("-")[0], bytes(row["payload"])) for row in (await tables.live()).values())
    assert sorted(payloads.values()) == [TASKS] * ROUNDS
