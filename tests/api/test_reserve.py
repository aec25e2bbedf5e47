"""POST /v1/reserve."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.api.caller import QUEUE, Caller, ids, instant


def test_reserved_task_is_the_task_and_its_token(api: Caller) -> None:
    accepted = api.enqueue(payload={"n": 1}, type="t", meta={"k": "v"})
    reply = api.post("/v1/reserve", {"queues": [QUEUE], "worker_id": "worker ü/1", "lease_seconds": 60})
    [task] = reply["tasks"]
    token = task.pop("lease_token")
    assert len(token) >= 22
    assert task == api.task(accepted["id"])
    assert (task["status"], task["attempts"], task["lease_owner"]) == ("leased", 1, "worker ü/1")
    assert task["lease_until"] == _plus(reply["server_time"], 60)
    assert task["first_leased_at"] == task["updated_at"] == reply["server_time"]
    assert reply["next_available_at"] is None


def test_lease_lasts_thirty_seconds_by_default(api: Caller) -> None:
    api.enqueue()
    reply = api.post("/v1/reserve", {"queues": [QUEUE]})
    [task] = reply["tasks"]
    assert task["lease_until"] == _plus(reply["server_time"], 30)
    assert task["lease_owner"] is None


def test_lease_may_last_as_long_as_the_queue_allows(api: Caller) -> None:
    api.enqueue()
    [task] = api.reserve(lease_seconds=43200)
    assert task["lease_until"] == _plus(task["first_leased_at"], 43200)


def test_one_task_by_default_and_as_many_as_the_limit(api: Caller) -> None:
    api.enqueue_many(*({"id": f"task-{number}"} for number in range(5)))
    assert ids(api.reserve()) == ["task-0"]
    assert ids(api.reserve(limit=3)) == ["task-1", "task-2", "task-3"]
    rest = api.reserve(limit=1000)
    assert ids(rest) == ["task-4"]
    assert api.reserve(limit=1000) == []


def test_tokens_differ(api: Caller) -> None:
    api.enqueue_many(*[{}] * 100)
    assert len({task["lease_token"] for task in api.reserve(limit=100)}) == 100


def test_order_is_priority_then_time_then_acceptance(api: Caller) -> None:
    api.enqueue_many(
        {"id": "late", "priority": 1, "available_at": "2020-01-02T00:00:00Z"},
        {"id": "early", "priority": 1, "available_at": "2020-01-01T00:00:00Z"},
        {"id": "early-too", "priority": 1, "available_at": "2020-01-01T00:00:00Z"},
        {"id": "lowest", "priority": -1, "available_at": "2019-01-01T00:00:00Z"},
        {"id": "highest", "priority": 30},
    )
    assert ids(api.reserve(limit=10)) == ["highest", "early", "early-too", "late", "lowest"]


def test_highest_priority_wins_whatever_its_queue_and_equals_take_turns(api: Caller) -> None:
    api.enqueue_many(*({"id": f"{queue}{number}", "queue": queue} for queue in "ab" for number in range(3)))
    api.enqueue(queue="b", id="urgent", priority=99)
    order = [api.reserve(queues=["a", "b"])[0]["id"] for _ in range(7)]
    assert order[0] == "urgent"
    assert [task_id for task_id in order if task_id.startswith("a")] == ["a0", "a1", "a2"]
    assert {order[1][0], order[2][0]} == {order[3][0], order[4][0]} == {"a", "b"}


def test_only_the_named_queues_and_types(api: Caller) -> None:
    api.enqueue_many({"id": "a", "type": "x"}, {"id": "b", "type": "y"}, {"id": "c"}, {"id": "d", "queue": "other"})
    assert ids(api.reserve(types=["y", "z"], limit=10)) == ["b"]
    assert ids(api.reserve(types=[], limit=10)) == ["a", "c"]
    assert ids(api.reserve(queues=["nothing", "other", "other"], limit=10)) == ["d"]


def test_excluded_ids_are_left(api: Caller) -> None:
    api.enqueue_many({"id": "a"}, {"id": "b"})
    assert ids(api.reserve(exclude_ids=["a", *(f"none-{number}" for number in range(999))], limit=10)) == ["b"]
    assert ids(api.reserve(exclude_ids=[], limit=10)) == ["a"]


def test_a_hundred_queues_may_be_named(api: Caller) -> None:
    names = [f"queue-{number}" for number in range(100)]
    api.enqueue(queue="queue-99")
    assert [task["queue"] for task in api.reserve(queues=names)] == ["queue-99"]


def test_empty_reply_tells_what_comes_next(api: Caller) -> None:
    assert api.post("/v1/reserve", {"queues": [QUEUE]})["next_available_at"] is None
    accepted = api.enqueue(delay_seconds=100)
    reply = api.post("/v1/reserve", {"queues": [QUEUE]})
    assert (reply["tasks"], reply["next_available_at"]) == ([], accepted["available_at"])
    soon = api.lease(lease_seconds=50)
    assert api.post("/v1/reserve", {"queues": [QUEUE]})["next_available_at"] == soon["lease_until"]


def test_task_is_due_when_its_delay_is_over(api: Caller) -> None:
    accepted = api.enqueue(delay_seconds=0.3)
    assert (accepted["status"], api.reserve()) == ("scheduled", [])
    assert api.reserve(wait_seconds=10)[0]["id"] == accepted["id"]


def test_lease_that_ran_out_is_given_to_the_next(api: Caller) -> None:
    lost = api.lose_lease()
    [task] = api.reserve()
    assert (task["id"], task["attempts"], task["available_at"]) == (lost["id"], 2, lost["available_at"])
    assert task["lease_token"] != lost["lease_token"]
    assert (task["last_error"], task["last_error_at"]) == ("lease expired", lost["lease_until"])
    assert task["first_leased_at"] == lost["first_leased_at"]


def test_lease_that_ran_out_with_the_last_attempt_is_death(api: Caller) -> None:
    lost = api.lose_lease(max_attempts=1)
    assert api.reserve() == []
    task = api.task(lost["id"])
    assert (task["status"], task["finished_at"]) == ("dead", lost["lease_until"])
    assert api.get(f"/v1/dlq/{lost['id']}")["reason"] == "lease expired"


def test_reply_holds_about_eight_mebibytes(api: Caller) -> None:
    payload = "x" * (256 * 1024 - 2)
    for _ in range(2):
        api.enqueue_many(*[{"payload": payload}] * 20)
    reply = api.client.post("/v1/reserve", json={"queues": [QUEUE], "limit": 1000})
    first = len(reply.json()["tasks"])
    assert 1 <= first < 40
    assert len(reply.content) < 9 * 1024 * 1024
    assert len(api.reserve(limit=1000)) == 40 - first


def test_errors_count_for_the_size_of_the_reply(api: Caller) -> None:
    api.enqueue_many(*[{"payload": "x" * 4000, "max_attempts": 0}] * 1000)
    leased = api.reserve(limit=1000)
    errors = [
        {"id": task["id"], "lease_token": task["lease_token"], "delay_seconds": 0, "error": "e" * 8192}
        for task in leased
    ]
    for start in range(0, 1000, 500):
        api.post("/v1/tasks/nack", {"items": errors[start : start + 500]})
    reply = api.client.post("/v1/reserve", json={"queues": [QUEUE], "limit": 1000})
    assert 1 <= len(reply.json()["tasks"]) < 1000
    assert len(reply.content) < 9 * 1024 * 1024


def test_wait_ends_when_a_task_comes(api: Caller) -> None:
    def enqueue_later() -> str:
        time.sleep(0.5)
        return str(api.enqueue()["id"])

    with ThreadPoolExecutor() as pool:
        later, started = pool.submit(enqueue_later), time.monotonic()
        tasks = api.reserve(wait_seconds=30)
        waited = time.monotonic() - started
    assert ids(tasks) == [later.result()]
    assert 0.4 <= waited < 20


@pytest.mark.parametrize("queues", [[QUEUE], [QUEUE, "other"]], ids=["one-queue", "two-queues"])
def test_wait_for_nothing_takes_its_time_and_returns_empty(api: Caller, queues: list[str]) -> None:
    started = time.monotonic()
    assert api.reserve(queues=queues, wait_seconds=0.6) == []
    assert time.monotonic() - started >= 0.6


def test_wait_ends_when_a_lease_runs_out(api: Caller) -> None:
    task = api.lease(lease_seconds=0.5)
    [again] = api.reserve(wait_seconds=30)
    assert (again["id"], again["attempts"]) == (task["id"], 2)


def test_waiting_calls_do_not_keep_others_from_the_database(api: Caller) -> None:
    with ThreadPoolExecutor(max_workers=20) as pool:
        # More than there are database connections.
        waiting = [pool.submit(api.reserve, queues=["never"], wait_seconds=3) for _ in range(20)]
        time.sleep(0.5)
        started = time.monotonic()
        api.enqueue()
        assert len(api.reserve()) == 1
        assert time.monotonic() - started < 2
        assert all(call.result() == [] for call in waiting)


def _plus(text: str, seconds: float) -> str:
    later = instant(text) + timedelta(seconds=seconds)
    return later.isoformat(timespec="microseconds").replace("+00:00", "Z")
