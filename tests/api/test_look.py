"""GET /v1/tasks/{id}, /v1/tasks and /v1/tasks/{id}/attempts."""

import time
from typing import Any

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, Json, ids
from tests.api.checking import refused


def finish(api: Caller, status: str, **fields: Any) -> str:
    """Makes a task that ended in the given way."""
    if status == "expired":
        return str(api.enqueue(expires_at="2020-01-01T00:00:00Z", **fields)["id"])
    task = api.lease(**fields)
    if status == "cancelled":
        api.client.delete(f"/v1/tasks/{task['id']}", params={"force": "true"}).raise_for_status()
    else:
        api.settle({"done": "ack", "dead": "fail"}[status], task, **({"reason": "no"} if status == "dead" else {}))
    return str(task["id"])


@pytest.mark.parametrize("status", ["done", "dead", "expired", "cancelled"])
def test_finished_task_is_there_to_look_at(api: Caller, status: str) -> None:
    task = api.task(finish(api, status, payload={"n": 1.5}, meta={"k": 1}, type="t", priority=3))
    assert (task["status"], task["payload"], task["meta"], task["type"], task["priority"]) == (
        status,
        {"n": 1.5},
        {"k": 1},
        "t",
        3,
    )
    assert task["finished_at"] is not None
    assert task["lease_until"] is None
    assert api.tasks(status=status) == [task]


@pytest.mark.parametrize("path", ["/v1/tasks/none", "/v1/tasks/none/attempts", "/v1/dlq/none"])
def test_unknown_task(client: httpx.Client, path: str) -> None:
    assert refused(client.get(path)) == (404, "task_not_found")


def test_list_without_a_status_is_the_live_ones_in_order_of_acceptance(api: Caller) -> None:
    for status in ("done", "dead", "cancelled"):
        finish(api, status)
    api.enqueue(id="later", delay_seconds=60)
    api.enqueue(id="urgent", priority=99)
    api.enqueue(id="plain")
    api.reserve()
    assert [(task["id"], task["status"]) for task in api.tasks()] == [
        ("later", "scheduled"),
        ("urgent", "leased"),
        ("plain", "ready"),
    ]
    assert [ids(api.tasks(status=status)) for status in ("scheduled", "leased", "ready")] == [
        ["later"],
        ["urgent"],
        ["plain"],
    ]


@pytest.mark.parametrize("status", ["done", "dead", "expired", "cancelled"])
def test_finished_ones_are_newest_first(api: Caller, status: str) -> None:
    if status == "expired":
        given = [api.enqueue(expires_at=f"2020-01-0{day}T00:00:00Z")["id"] for day in (2, 3, 4)]
    else:
        given = [finish(api, status) for _ in range(3)]
    assert ids(api.tasks(status=status)) == given[::-1]
    assert ids(api.tasks(status=status, queue=QUEUE, limit=1)) == given[::-1]


@pytest.mark.parametrize("status", ["ready", "done", "dead", "expired", "cancelled"])
def test_list_filters(api: Caller, status: str) -> None:
    kinds: list[Json] = [{"queue": "a", "type": "x"}, {"queue": "a", "type": "y"}, {"queue": "b", "type": "x"}]
    made = [api.enqueue(**kind)["id"] if status == "ready" else finish(api, status, **kind) for kind in kinds]

    def listed(**filters: str) -> set[str]:
        return set(ids(api.tasks(status=status, **filters)))

    assert listed() == set(made)
    assert listed(queue="a") == {made[0], made[1]}
    assert listed(type="x") == {made[0], made[2]}
    assert listed(topic="b") == {made[2]}
    assert listed(queue="a", type="x", topic="a") == {made[0]}
    assert listed(queue="a", topic="b") == listed(queue="A") == set()


def test_list_tells_of_a_lost_lease_as_the_task_itself_does(api: Caller) -> None:
    api.lose_lease(id="task")
    # As late as a list may be.
    time.sleep(2)
    [listed] = api.tasks()
    assert listed == api.task("task")


@pytest.mark.parametrize("limit", [1, 3, 7, 500])
def test_live_pages_hold_each_task_once(api: Caller, limit: int) -> None:
    accepted = ids(api.enqueue_many(*[{}] * 7))
    assert ids(api.tasks(limit=limit)) == accepted


def test_first_page_holds_fifty_by_default(api: Caller) -> None:
    accepted = ids(api.enqueue_many(*[{}] * 51))
    page = api.get("/v1/tasks")
    assert ids(page["items"]) == accepted[:50]
    rest = api.get("/v1/tasks", cursor=page["next_cursor"])
    assert (ids(rest["items"]), rest["next_cursor"]) == (accepted[50:], None)


def test_what_stays_put_while_paging_is_seen_once(api: Caller) -> None:
    accepted = ids(api.enqueue_many(*[{}] * 6))
    page = api.get("/v1/tasks", limit=3)
    for gone in (accepted[0], accepted[2]):
        api.client.delete(f"/v1/tasks/{gone}").raise_for_status()
    added = api.enqueue()["id"]
    rest = api.tasks(limit=2, cursor=page["next_cursor"])
    assert ids(rest) == [*accepted[3:], added]


@pytest.mark.parametrize("status", ["done", "dead"])
def test_finished_pages_hold_each_task_once(api: Caller, status: str) -> None:
    api.enqueue_many(*[{}] * 7)
    verb, extra = ("ack", {}) if status == "done" else ("fail", {"reason": "no"})
    tasks = api.reserve(limit=7)
    # Finished at one instant: the order among them is any, but each is seen once.
    items = [{"id": task["id"], "lease_token": task["lease_token"], **extra} for task in tasks]
    api.settle_many(verb, *items)
    listed = ids(api.tasks(status=status, limit=2))
    assert sorted(listed) == sorted(ids(tasks))
    assert listed == ids(api.tasks(status=status))


def test_attempts_tell_of_every_delivery(api: Caller) -> None:
    first = api.lease(id="task")
    api.settle("nack", first, error="no luck", delay_seconds=0)
    [second] = api.reserve(lease_seconds=0.001)
    [third] = api.reserve(wait_seconds=5)
    api.settle("release", third)
    [fourth] = api.reserve(worker_id="worker-2")
    running = api.attempts("task")
    assert [
        (attempt["attempt_no"], attempt["worker_id"], attempt["success"], attempt["reason"]) for attempt in running
    ] == [
        (1, "worker-1", False, "no luck"),
        (2, None, False, "lease expired"),
        (3, "worker-2", None, None),
    ]
    assert (running[0]["started_at"], running[0]["finished_at"] is None) == (first["first_leased_at"], False)
    assert running[1]["finished_at"] == second["lease_until"]
    assert running[2]["finished_at"] is None
    api.settle("ack", fourth)
    last = api.attempts("task")[-1]
    assert (last["attempt_no"], last["success"], last["started_at"]) == (3, True, running[2]["started_at"])
    assert last["finished_at"] >= last["started_at"]


@pytest.mark.parametrize("end", ["dead", "cancelled"])
def test_attempts_that_ended_otherwise(api: Caller, end: str) -> None:
    [attempt] = api.attempts(finish(api, end))
    assert (attempt["attempt_no"], attempt["success"]) == (1, False)
    assert attempt["reason"] == {"dead": "no", "cancelled": "cancelled"}[end]


def test_task_that_nobody_tried_has_no_attempts(api: Caller) -> None:
    assert api.get(f"/v1/tasks/{api.enqueue()['id']}/attempts") == {"items": [], "next_cursor": None}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("running", [True, False], ids=["running", "ended"])
def test_attempt_pages_hold_each_once(api: Caller, limit: int, running: bool) -> None:
    task = api.lease(id="task", max_attempts=0)
    for _ in range(3):
        api.settle("nack", task, delay_seconds=0)
        [task] = api.reserve()
    if not running:
        api.settle("ack", task)
    assert [attempt["attempt_no"] for attempt in api.attempts("task", limit=limit)] == [1, 2, 3, 4]


def test_attempts_of_an_earlier_task_of_the_same_id_are_not_this_ones(api: Caller) -> None:
    finish(api, "done", id="task")
    api.enqueue(id="task")
    assert api.attempts("task") == []


@pytest.mark.parametrize("name", ["queue", "status", "type", "topic", "cursor"])
def test_empty_parameter_is_the_same_as_absent(api: Caller, name: str) -> None:
    accepted = api.enqueue(type="t")
    assert ids(api.tasks(**{name: ""})) == [accepted["id"]]
