"""Why a task is not running now."""

import time
from collections.abc import Iterator

import pytest

from tests.api.caller import ids, new_tenant
from tests.api.checking import refused
from tests.service import Service
from tests.waiting.topology import TopologyCaller, connect


@pytest.fixture
def api(server: Service) -> Iterator[TopologyCaller]:
    with connect(server, new_tenant()) as client:
        yield TopologyCaller(client)


def reason(api: TopologyCaller, task_id: str) -> str:
    told = api.explain(task_id)
    assert told["detail"]
    return str(told["reason"])


def test_ready(api: TopologyCaller) -> None:
    task = api.enqueue()
    assert reason(api, task["id"]) == "ready"
    assert ids(api.reserve()) == [task["id"]]


def test_scheduled(api: TopologyCaller) -> None:
    task = api.enqueue(delay_seconds=3600)
    told = api.explain(task["id"])
    assert (told["reason"], told["available_at"]) == ("scheduled", task["available_at"])


def test_scheduled_until_it_is_due(api: TopologyCaller) -> None:
    task = api.enqueue(delay_seconds=0.2)
    time.sleep(0.25)
    assert reason(api, task["id"]) == "ready"


def test_leased(api: TopologyCaller) -> None:
    task = api.lease()
    told = api.explain(task["id"])
    assert (told["reason"], told["lease_owner"], told["lease_until"]) == ("leased", "worker-1", task["lease_until"])


def test_a_lost_lease(api: TopologyCaller) -> None:
    assert reason(api, api.lose_lease()["id"]) == "ready"
    assert reason(api, api.lose_lease(max_attempts=1, queue="other")["id"]) == "finished"


def test_finished(api: TopologyCaller) -> None:
    done = api.lease()
    api.settle("ack", done)
    cancelled = api.enqueue()
    api.client.delete(f"/v1/tasks/{cancelled['id']}")
    expired = api.enqueue(ttl_seconds=0.001)
    time.sleep(0.02)
    finished = {"done": done, "cancelled": cancelled, "expired": expired, "dead": api.die()}
    for status, task in finished.items():
        told = api.explain(task["id"])
        assert (told["reason"], told["status"]) == ("finished", status)


def test_done_with_its_key_still_held(api: TopologyCaller) -> None:
    task = api.lease(dedupe_key="k", dedupe_seconds=3600)
    api.settle("ack", task)
    assert reason(api, task["id"]) == "finished"


def test_waiting_behind(api: TopologyCaller) -> None:
    first, second, urgent = api.enqueue(), api.enqueue(), api.enqueue(priority=21)
    api.enqueue(priority=1)
    api.enqueue(queue="other", priority=99)
    api.enqueue(priority=99, delay_seconds=3600)
    assert reason(api, urgent["id"]) == "ready"
    assert (api.explain(first["id"])["reason"], api.explain(first["id"])["ahead"]) == ("waiting_behind", 1)
    assert (api.explain(second["id"])["reason"], api.explain(second["id"])["ahead"]) == ("waiting_behind", 2)
    # It is as told.
    assert ids(api.reserve(limit=2)) == [urgent["id"], first["id"]]
    assert reason(api, second["id"]) == "ready"


def test_behind_one_that_becomes_due_or_comes_back(api: TopologyCaller) -> None:
    """Nobody need have moved them for the answer to be right: the next reserve gets those."""
    due = api.enqueue(delay_seconds=1.5, priority=99)
    lost = api.lease(lease_seconds=1.5, priority=98)
    task = api.enqueue()
    assert reason(api, task["id"]) == "ready"
    time.sleep(1.6)
    assert reason(api, task["id"]) == "waiting_behind"
    assert ids(api.reserve(limit=2)) == [due["id"], lost["id"]]


def test_not_behind_one_that_has_expired(api: TopologyCaller) -> None:
    api.enqueue(ttl_seconds=0.01, priority=99)
    task = api.enqueue()
    time.sleep(0.05)
    assert reason(api, task["id"]) == "ready"
    assert ids(api.reserve()) == [task["id"]]


def test_queue_paused(api: TopologyCaller) -> None:
    task = api.enqueue()
    api.post("/v1/queues/work/pause")
    assert reason(api, task["id"]) == "queue_paused"
    api.post("/v1/queues/work/resume")
    assert reason(api, task["id"]) == "ready"


def test_rate_limited(api: TopologyCaller) -> None:
    api.put_queue("work", rate_per_second=0.001)
    api.enqueue_many({}, {"id": "second"})
    assert reason(api, "second") == "waiting_behind"
    assert len(api.reserve(limit=2)) == 1
    assert reason(api, "second") == "rate_limited"
    api.put_queue("work")
    assert reason(api, "second") == "ready"


def test_concurrency_limited(api: TopologyCaller) -> None:
    api.put_queue("work", concurrency_limit=1)
    api.enqueue_many({}, {"id": "second"})
    [first] = api.reserve(limit=2)
    assert reason(api, "second") == "concurrency_limited"
    api.settle("ack", first)
    assert reason(api, "second") == "ready"


def test_concurrency_limited_until_a_lease_ends(api: TopologyCaller) -> None:
    api.put_queue("work", concurrency_limit=1)
    api.enqueue_many({"max_attempts": 1}, {"id": "second"})
    api.reserve(lease_seconds=0.2)
    time.sleep(0.25)
    assert reason(api, "second") == "ready"


def test_a_task_that_is_not_there(api: TopologyCaller, server: Service) -> None:
    task = api.enqueue()
    assert refused(api.client.get("/v1/tasks/none/explain")) == (404, "task_not_found")
    with connect(server, new_tenant()) as other:
        assert refused(other.get(f"/v1/tasks/{task['id']}/explain")) == (404, "task_not_found")
    api.post("/v1/queues/work/purge")
    assert refused(api.client.get(f"/v1/tasks/{task['id']}/explain")) == (404, "task_not_found")


def test_in_a_queue_that_was_deleted(api: TopologyCaller) -> None:
    api.put_queue("work")
    leased = api.lease()
    waiting = api.enqueue()
    api.delete("/v1/queues/work")
    assert reason(api, leased["id"]) == "leased"
    assert refused(api.client.get(f"/v1/tasks/{waiting['id']}/explain")) == (404, "task_not_found")
