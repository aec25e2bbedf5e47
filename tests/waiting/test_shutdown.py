"""Waits end early and in good order when the service is asked to end."""

import asyncio
import time

import pytest

from tests.waiting.conftest import StartReplica
from tests.waiting.replica import replica_at

WAIT_SECONDS = 28.0
SOON_SECONDS = WAIT_SECONDS / 2


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["one-worker", "two-workers"])
async def test_waits_end_at_sigterm(
    database_url: str, start_replica: StartReplica, tenant: str, arguments: tuple[str, ...]
) -> None:
    service = start_replica(database_url, *arguments)
    async with replica_at(service.url, tenant) as replica:
        waits = await replica.start_waits(8, wait_seconds=WAIT_SECONDS)
        started = time.monotonic()
        ending = asyncio.create_task(asyncio.to_thread(service.terminate))
        assert [await wait.tasks() for wait in waits] == [[]] * 8
        assert time.monotonic() - started < SOON_SECONDS
    assert await ending == 0
    assert time.monotonic() - started < SOON_SECONDS
    assert "Traceback" not in service.log_text()


async def test_no_task_is_lost_to_a_wait_that_ends(database_url: str, start_replica: StartReplica, tenant: str) -> None:
    """What is enqueued while a replica ends goes to a caller that hears of it, or to the next one."""
    ending_one, other = start_replica(database_url), start_replica(database_url)
    async with replica_at(ending_one.url, tenant) as ending_replica, replica_at(other.url, tenant) as replica:
        waits = await ending_replica.start_waits(10, wait_seconds=WAIT_SECONDS)
        ending = asyncio.create_task(asyncio.to_thread(ending_one.terminate))
        ids = await replica.enqueue_many(10)
        taken = [task["id"] for wait in waits for task in await wait.tasks()]
        assert await ending == 0
        left = [task["id"] for task in await replica.reserve(limit=100)]
    assert sorted(taken + left) == sorted(ids)


async def test_a_service_without_waits_ends_soon(database_url: str, start_replica: StartReplica) -> None:
    service = start_replica(database_url)
    started = time.monotonic()
    assert await asyncio.to_thread(service.terminate) == 0
    assert time.monotonic() - started < SOON_SECONDS
