"""A caller that waits gets a task as soon as there is one, whatever brought it and whoever took it."""

import asyncio

import pytest

from tests.waiting.replica import SETTLE_SECONDS, SOON_SECONDS, Replica


@pytest.fixture(params=["same-replica", "other-replica"])
def taker(request: pytest.FixtureRequest, here: Replica, there: Replica) -> tuple[Replica, Replica]:
    """The replica at which somebody waits, and the one that is told what there is."""
    return (here, here) if request.param == "same-replica" else (there, here)


Pair = tuple[Replica, Replica]


async def test_by_an_enqueue(taker: Pair) -> None:
    waiting, told = taker
    wait = await waiting.start_wait()
    task_id = await told.enqueue()
    assert await wait.soon() == [task_id]


async def test_by_a_batch(taker: Pair) -> None:
    waiting, told = taker
    waits = await waiting.start_waits(3)
    ids = await told.enqueue_many(3)
    assert sorted([task_id for wait in waits for task_id in await wait.soon()]) == sorted(ids)


async def test_by_an_enqueue_to_any_of_the_queues(taker: Pair) -> None:
    waiting, told = taker
    wait = await waiting.start_wait(queues=["first", "second", "third"])
    task_id = await told.enqueue(queue="second")
    assert await wait.soon() == [task_id]


async def test_by_a_due_time(taker: Pair) -> None:
    waiting, told = taker
    wait = await waiting.start_wait()
    task_id = await told.enqueue(delay_seconds=1)
    assert await wait.soon() == [task_id]


async def test_by_a_due_time_that_was_there_before(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue(delay_seconds=2)
    wait = await waiting.start_wait()
    assert await wait.soon() == [task_id]


async def test_by_a_due_time_earlier_than_the_one_that_was_waited_for(taker: Pair) -> None:
    waiting, told = taker
    await told.enqueue(delay_seconds=3600)
    wait = await waiting.start_wait()
    task_id = await told.enqueue(delay_seconds=1)
    assert await wait.soon() == [task_id]


async def test_by_the_end_of_a_lease(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    await told.lease(lease_seconds=2)
    wait = await waiting.start_wait()
    assert await wait.soon() == [task_id]


async def test_by_a_release(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    task = await told.lease()
    wait = await waiting.start_wait()
    await told.settle("release", task)
    assert await wait.soon() == [task_id]


async def test_by_a_nack(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    task = await told.lease()
    wait = await waiting.start_wait()
    await told.settle("nack", task, delay_seconds=1)
    assert await wait.soon() == [task_id]


async def test_by_resume(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    await told.post("/v1/queues/work/pause")
    wait = await waiting.start_wait()
    await told.post("/v1/queues/work/resume")
    assert await wait.soon() == [task_id]


async def test_by_a_changed_setting(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    await told.call("PUT", "/v1/queues/work", {"paused": True})
    wait = await waiting.start_wait()
    await told.call("PATCH", "/v1/queues/work", {"paused": False})
    assert await wait.soon() == [task_id]


async def test_by_settings_put_anew(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    await told.call("PUT", "/v1/queues/work", {"paused": True})
    wait = await waiting.start_wait()
    await told.call("PUT", "/v1/queues/work", {})
    assert await wait.soon() == [task_id]


async def test_by_a_publish(taker: Pair) -> None:
    waiting, told = taker
    await told.call("PUT", "/v1/topics/news")
    await told.call("PUT", "/v1/queues/work", {"topic": "news"})
    wait = await waiting.start_wait()
    published = await told.post("/v1/topics/news/publish", {"payload": 1})
    assert await wait.soon() == [published["deliveries"][0]["id"]]


async def test_by_a_requeue(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    await told.settle("fail", await told.lease(), reason="broken")
    wait = await waiting.start_wait()
    await told.post("/v1/dlq/requeue", {})
    assert await wait.soon() == [task_id]


async def test_by_a_requeue_in_the_background(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue()
    await told.settle("fail", await told.lease(), reason="broken")
    wait = await waiting.start_wait()
    await told.post("/v1/dlq/requeue", {"rate_per_second": 10})
    assert await wait.soon() == [task_id]


async def test_by_an_edit(taker: Pair) -> None:
    waiting, told = taker
    task_id = await told.enqueue(delay_seconds=3600)
    wait = await waiting.start_wait()
    await told.call("PATCH", f"/v1/tasks/{task_id}", {"available_at": "2020-01-01T00:00:00Z"})
    assert await wait.soon() == [task_id]


async def test_by_a_place_that_became_free(here: Replica) -> None:
    await here.call("PUT", "/v1/queues/work", {"concurrency_limit": 1})
    first, second = await here.enqueue_many(2)
    task = await here.lease()
    wait = await here.start_wait()
    await here.settle("ack", task)
    assert (task["id"], await wait.soon()) == (first, [second])


async def test_by_a_place_that_a_forced_cancel_made_free(here: Replica) -> None:
    await here.call("PUT", "/v1/queues/work", {"concurrency_limit": 1})
    _, second = await here.enqueue_many(2)
    task = await here.lease()
    wait = await here.start_wait()
    await here.call("DELETE", f"/v1/tasks/{task['id']}?force=true")
    assert await wait.soon() == [second]


async def test_by_a_rate_that_allows_the_next(taker: Pair) -> None:
    waiting, told = taker
    await told.call("PUT", "/v1/queues/work", {"rate_per_second": 0.5})
    _, second = await told.enqueue_many(2)
    await told.lease()
    wait = await waiting.start_wait()
    assert await wait.soon() == [second]


async def test_the_caller_of_that_type_is_woken(taker: Pair) -> None:
    """The one that has waited longer wants something else."""
    waiting, told = taker
    other = await waiting.start_wait(types=["a"])
    wait = await waiting.start_wait(types=["b"])
    task_id = await told.enqueue(type="b")
    assert await wait.soon() == [task_id]
    other.check_waiting()
    await other.hang_up()


async def test_the_caller_that_does_not_exclude_it_is_woken(here: Replica) -> None:
    others = await here.start_waits(3, exclude_ids=["chosen"])
    wait = await here.start_wait()
    await here.enqueue(id="chosen")
    assert await wait.soon() == ["chosen"]
    for other in others:
        other.check_waiting()
        await other.hang_up()


async def test_of_several_types_due_together_each_caller_gets_its_own(here: Replica) -> None:
    ids = {type_: await here.enqueue(type=type_, delay_seconds=6) for type_ in ("a", "b", "c")}
    waits = {type_: await here.start_wait(types=[type_]) for type_ in ("c", "a", "b")}
    assert {type_: await wait.soon() for type_, wait in waits.items()} == {name: [id_] for name, id_ in ids.items()}


async def test_other_queues_and_tenants_wake_nobody(here: Replica, there: Replica) -> None:
    wait = await here.start_wait()
    await here.enqueue(queue="other")
    await there.enqueue(queue="Work")
    await asyncio.sleep(SETTLE_SECONDS)
    wait.check_waiting()
    await wait.hang_up()


async def test_ends_with_nothing_when_the_time_is_over(here: Replica) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await here.reserve(wait_seconds=1.5) == []
    assert 1.4 < loop.time() - started < SOON_SECONDS


async def test_does_not_wait_when_there_is_something(here: Replica) -> None:
    task_id = await here.enqueue()
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert (await here.lease(wait_seconds=30))["id"] == task_id
    assert loop.time() - started < SOON_SECONDS
