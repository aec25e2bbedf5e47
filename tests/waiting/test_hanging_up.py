"""A caller that goes away while it waits gets no lease."""

import asyncio

from tests.waiting.replica import SETTLE_SECONDS, Json, Replica

GONE_BY_THEN_SECONDS = 0.5
PATIENCE_SECONDS = 10.0


async def ready_again(replica: Replica, task_id: str) -> Json:
    """The task as soon as nobody has it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            task = await replica.get(f"/v1/tasks/{task_id}")
            if task["status"] == "ready":
                return task
            await asyncio.sleep(0.05)


async def test_a_caller_that_hung_up_gets_no_lease(here: Replica) -> None:
    wait = await here.start_wait()
    await wait.hang_up()
    await asyncio.sleep(GONE_BY_THEN_SECONDS)
    task_id = await here.enqueue()
    await asyncio.sleep(SETTLE_SECONDS)
    assert (await ready_again(here, task_id))["attempts"] == 0
    assert (await here.lease())["attempts"] == 1


async def test_the_next_who_waits_gets_it_instead(here: Replica) -> None:
    gone = await here.start_waits(5)
    wait = await here.start_wait()
    for caller in gone:
        await caller.hang_up()
    await asyncio.sleep(GONE_BY_THEN_SECONDS)
    task_id = await here.enqueue()
    assert await wait.soon() == [task_id]
    assert (await here.get(f"/v1/tasks/{task_id}"))["attempts"] == 1


async def test_a_caller_that_hung_up_at_another_replica(here: Replica, there: Replica) -> None:
    gone = await there.start_waits(3)
    for caller in gone:
        await caller.hang_up()
    await asyncio.sleep(GONE_BY_THEN_SECONDS)
    task_id = await here.enqueue()
    await asyncio.sleep(SETTLE_SECONDS)
    assert (await ready_again(here, task_id))["attempts"] == 0


async def test_nothing_is_lost_when_the_task_comes_as_the_caller_goes(here: Replica) -> None:
    """A reply that is on its way when the caller goes may be lost, with the lease: it comes back by the lease's end."""
    for _ in range(5):
        wait = await here.start_wait(lease_seconds=1)
        task_id, _ = await asyncio.gather(here.enqueue(), wait.hang_up())
        task = await here.lease(wait_seconds=10)
        assert task["id"] == task_id
        await here.settle("ack", task)
