"""A requeue in the background goes on whatever becomes of the replica that carries it, and does nothing twice."""

import asyncio
from pathlib import Path

from tests.api.caller import new_tenant
from tests.limits.fleet import Fleet, Json, services_on

LETTERS = 80
RATE = 20
PATIENCE_SECONDS = 60.0


async def make_letters(fleet: Fleet, count: int) -> list[str]:
    tasks = [{"queue": "work", "payload": number} for number in range(count)]
    await fleet.post("/v1/tasks/batch", {"tasks": tasks})
    leased = (await fleet.post("/v1/reserve", {"queues": ["work"], "limit": count, "lease_seconds": 600}))["tasks"]
    items = [{"id": task["id"], "lease_token": task["lease_token"], "reason": "broken"} for task in leased]
    results = (await fleet.post("/v1/tasks/fail", {"items": items}))["results"]
    assert all(result["ok"] for result in results)
    assert len(results) == count
    return [task["id"] for task in leased]


async def reached(fleet: Fleet, operation: Json, requeued: int) -> Json:
    """The operation as soon as it has come so far."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            now = await fleet.call("GET", f"/v1/operations/{operation['id']}")
            if now["requeued"] >= requeued:
                return now
            await asyncio.sleep(0.05)


async def ended(fleet: Fleet, operation: Json) -> Json:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            now = await fleet.call("GET", f"/v1/operations/{operation['id']}")
            if now["status"] != "running":
                return now
            await asyncio.sleep(0.05)


async def check_each_once(fleet: Fleet, ids: list[str]) -> None:
    """Every letter is a task again that was delivered never since, and there is no second of any."""
    tasks = (await fleet.post("/v1/reserve", {"queues": ["work"], "limit": 1000, "lease_seconds": 600}))["tasks"]
    assert sorted(task["id"] for task in tasks) == sorted(ids)
    assert {task["attempts"] for task in tasks} == {1}
    stats = await fleet.stats("work")
    assert (stats["dead"], stats["ready"], stats["leased"]) == (0, 0, len(ids))


async def test_another_replica_goes_on(database_url: str, tmp_path: Path) -> None:
    """Only the first replica may carry operations; when it is killed, one that may is started."""
    with services_on(database_url, tmp_path, {}, {"MQ_JANITOR": "false"}) as services:
        fleet = Fleet(services, new_tenant())
        ids = await make_letters(fleet, LETTERS)
        operation = await fleet.post("/v1/dlq/requeue", {"rate_per_second": RATE})
        assert operation["status_code"] == 202
        await reached(fleet, operation, 1)
        fleet.kill(0)
        halted = await fleet.call("GET", f"/v1/operations/{operation['id']}")
        assert halted["status"] == "running"
        assert 0 < halted["requeued"] < LETTERS
        assert halted["requeued"] + halted["remaining"] == LETTERS
        with services_on(database_url, tmp_path / "later", {}):
            done = await ended(fleet, operation)
        assert (done["status"], done["requeued"], done["skipped"], done["remaining"]) == ("done", LETTERS, 0, 0)
        await check_each_once(fleet, ids)
        await fleet.close()
        assert fleet.failures == []


async def test_replicas_that_die_again_and_again(fleet: Fleet) -> None:
    ids = await make_letters(fleet, LETTERS)
    operation = await fleet.post("/v1/dlq/requeue", {"rate_per_second": RATE})
    for round_ in range(3):
        await reached(fleet, operation, 20 * round_ + 1)
        fleet.kill(round_ % 2)
        await asyncio.to_thread(fleet.revive, round_ % 2)
    done = await ended(fleet, operation)
    assert (done["status"], done["requeued"], done["skipped"], done["remaining"]) == ("done", LETTERS, 0, 0)
    await check_each_once(fleet, ids)


async def test_two_replicas_together_keep_the_rate(fleet: Fleet) -> None:
    """Both may carry it on, but not each at the rate."""
    ids = await make_letters(fleet, LETTERS)
    operation = await fleet.post("/v1/dlq/requeue", {"rate_per_second": 10})
    first = await reached(fleet, operation, 1)
    await asyncio.sleep(3)
    second = await fleet.call("GET", f"/v1/operations/{operation['id']}")
    assert first["requeued"] < second["requeued"] < LETTERS
    assert (await ended(fleet, operation))["requeued"] == LETTERS
    await check_each_once(fleet, ids)
