"""POST /v1/tasks and /v1/tasks/batch."""

import re
from datetime import timedelta

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, ids, instant
from tests.api.checking import refused

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_new_task_is_created_at_its_location(client: httpx.Client, api: Caller) -> None:
    response = client.post("/v1/tasks", json={"queue": QUEUE, "payload": {"n": 1}})
    reply = response.json()
    assert response.status_code == 201
    assert UUID7.fullmatch(reply["id"])
    assert response.headers["Location"] == f"/v1/tasks/{reply['id']}"
    assert client.get(response.headers["Location"]).json()["payload"] == {"n": 1}
    assert (reply["queue"], reply["status"], reply["existed"]) == (QUEUE, "ready", False)
    assert reply["available_at"] == api.task(reply["id"])["available_at"]


def test_defaults(api: Caller) -> None:
    accepted = api.enqueue(payload=1)
    task = api.task(accepted["id"])
    assert task == {
        "id": accepted["id"],
        "tenant_id": api.tenant,
        "queue": QUEUE,
        "topic": QUEUE,
        "publish_id": None,
        "type": "",
        "payload": 1,
        "content_type": "application/json",
        "meta": {},
        "priority": 20,
        "dedupe_key": None,
        "status": "ready",
        "attempts": 0,
        "max_attempts": 5,
        "available_at": task["created_at"],
        "expires_at": None,
        "timeout_seconds": None,
        "lease_owner": None,
        "lease_until": None,
        "last_error": None,
        "last_error_at": None,
        "result": None,
        "created_at": task["created_at"],
        "updated_at": task["created_at"],
        "first_leased_at": None,
        "finished_at": None,
    }


def test_everything_given_is_kept(api: Caller) -> None:
    given = {
        "id": "order-7:v1.2_a",
        "queue": "Mail.out:eu-1_x",
        "payload": {"to": "a"},
        "content_type": "application/vnd.order+json",
        "type": "send-mail",
        "meta": {"trace": "ü", "deep": {"n": [1, None]}},
        "priority": -5,
        "dedupe_key": "key with spaces, ünïcode ✓ and / slashes",
        "max_attempts": 0,
        "timeout_seconds": 2.5,
    }
    assert api.enqueue(**given, dedupe_seconds=5, delay_seconds=60.5, ttl_seconds=3600)["id"] == given["id"]
    task = api.task("order-7:v1.2_a")
    created_at = instant(task["created_at"])
    assert {name: task[name] for name in given} == given
    assert task["status"] == "scheduled"
    assert instant(task["available_at"]) == created_at + timedelta(seconds=60.5)
    assert instant(task["expires_at"]) == created_at + timedelta(hours=1)


def test_null_is_the_same_as_absent(api: Caller) -> None:
    optional = (
        "payload_base64 content_type type meta priority dedupe_key dedupe_seconds max_attempts delay_seconds"
        " available_at ttl_seconds expires_at timeout_seconds id"
    )
    given = api.enqueue(payload=1, **dict.fromkeys(optional.split()))
    plain = api.enqueue(payload=1)
    own = {"id", "available_at", "created_at", "updated_at"}
    first, second = (
        {name: value for name, value in api.task(accepted["id"]).items() if name not in own}
        for accepted in (given, plain)
    )
    assert first == second


@pytest.mark.parametrize("priority", [-(2**31), 0, 2**31 - 1])
def test_priority_is_any_32_bit_integer(api: Caller, priority: int) -> None:
    assert api.task(api.enqueue(priority=priority)["id"])["priority"] == priority


@pytest.mark.parametrize("name", ["a", "x" * 255, "...", "-", ":", "Case", "case", "a.b:c_d-e"])
def test_names_of_the_alphabet_are_taken(api: Caller, name: str) -> None:
    accepted = api.enqueue(queue=name, type=name)
    assert (accepted["queue"], api.task(accepted["id"])["type"]) == (name, name)
    [task] = api.reserve(queues=[name], types=[name])
    assert task["id"] == accepted["id"]


def test_names_are_case_sensitive(api: Caller) -> None:
    api.enqueue(queue="Work", id="Id")
    assert api.reserve(queues=["work", "WORK"]) == []
    assert api.enqueue(queue="Work", id="id")["existed"] is False


@pytest.mark.parametrize("given", ["x" * 64, "...", "A:b.c_d-9"])
def test_caller_given_id(api: Caller, client: httpx.Client, given: str) -> None:
    response = client.post("/v1/tasks", json={"queue": QUEUE, "payload": 1, "id": given})
    assert (response.status_code, response.headers["Location"]) == (201, f"/v1/tasks/{given}")
    assert api.task(given)["id"] == given


def test_id_of_a_live_task_is_taken(api: Caller, client: httpx.Client) -> None:
    api.enqueue(id="mine", payload=1)
    before = api.everything()
    again = client.post("/v1/tasks", json={"queue": "other", "payload": 2, "id": "mine"})
    assert refused(again) == (409, "task_exists")
    assert api.everything() == before


def test_id_of_a_finished_task_is_free_again(api: Caller) -> None:
    api.settle("ack", api.lease(id="mine", payload=1), result=1)
    assert api.enqueue(id="mine", payload=2)["existed"] is False
    task = api.task("mine")
    assert (task["payload"], task["status"], task["attempts"], task["result"]) == (2, "ready", 0, None)


def test_held_dedupe_key_returns_the_holder_unchanged(api: Caller, client: httpx.Client) -> None:
    first = api.enqueue(dedupe_key="key", payload=1, priority=3, delay_seconds=60)
    holder = api.task(first["id"])
    body = {"queue": QUEUE, "dedupe_key": "key", "payload": 2, "priority": 9, "id": "another"}
    response = client.post("/v1/tasks", json=body)
    assert response.status_code == 200
    assert response.json() == {**first, "existed": True}
    assert api.task(first["id"]) == holder
    assert refused(client.get("/v1/tasks/another")) == (404, "task_not_found")


def test_dedupe_key_is_the_queues_own(api: Caller) -> None:
    api.enqueue(queue="a", dedupe_key="key")
    assert api.enqueue(queue="b", dedupe_key="key")["existed"] is False
    assert api.enqueue(queue="a", dedupe_key="Key")["existed"] is False


def test_done_task_holds_its_key_for_the_window_it_asked_for(api: Caller) -> None:
    done = api.lease(dedupe_key="held", dedupe_seconds=3600)
    api.settle("ack", done)
    again = api.enqueue(dedupe_key="held")
    assert (again["id"], again["status"], again["existed"]) == (done["id"], "done", True)
    api.settle("ack", api.lease(dedupe_key="free"))
    assert api.enqueue(dedupe_key="free")["existed"] is False


@pytest.mark.parametrize("end", ["dead", "cancelled"])
def test_dead_and_cancelled_tasks_free_their_key(api: Caller, client: httpx.Client, end: str) -> None:
    task = api.lease(dedupe_key="key", dedupe_seconds=3600)
    if end == "dead":
        api.settle("fail", task, reason="no")
    else:
        client.delete(f"/v1/tasks/{task['id']}", params={"force": "true"})
    assert api.task(task["id"])["status"] == end
    assert api.enqueue(dedupe_key="key")["existed"] is False


def test_batch_answers_in_input_order(api: Caller) -> None:
    given = [f"task-{number}" for number in (3, 1, 2)]
    results = api.enqueue_many(*({"id": task_id, "queue": f"queue-{task_id}"} for task_id in given))
    assert [(result["id"], result["queue"], result["existed"]) for result in results] == [
        (task_id, f"queue-{task_id}", False) for task_id in given
    ]
    assert ids(api.tasks()) == given


def test_batch_folds_a_key_that_it_has_twice(api: Caller) -> None:
    api.enqueue(id="holder", dedupe_key="held")
    results = api.enqueue_many(
        {"id": "a", "dedupe_key": "new"}, {"dedupe_key": "held"}, {"id": "b"}, {"id": "c", "dedupe_key": "new"}
    )
    assert [(result["id"], result["existed"]) for result in results] == [
        ("a", False),
        ("holder", True),
        ("b", False),
        ("a", True),
    ]
    assert ids(api.tasks()) == ["holder", "a", "b"]


@pytest.mark.parametrize("taken", [["live"], ["twice", "twice"]], ids=["by-a-live-task", "within-the-batch"])
def test_batch_with_a_taken_id_accepts_nothing(api: Caller, client: httpx.Client, taken: list[str]) -> None:
    api.enqueue(id="live")
    before = api.everything()
    tasks = [{"queue": QUEUE, "payload": 1, "id": task_id} for task_id in ["first", *taken, "last"]]
    assert refused(client.post("/v1/tasks/batch", json={"tasks": tasks})) == (409, "task_exists")
    assert api.everything() == before


@pytest.mark.parametrize("count", [0, 1001])
def test_batch_of_a_wrong_size_is_refused(api: Caller, client: httpx.Client, count: int) -> None:
    tasks = [{"queue": QUEUE, "payload": None}] * count
    assert refused(client.post("/v1/tasks/batch", json={"tasks": tasks})) == (422, "invalid_request")
    assert api.tasks() == []


def test_batch_of_a_thousand(api: Caller) -> None:
    results = api.enqueue_many(*({"payload": number} for number in range(1000)))
    assert ids(api.tasks(limit=500)) == ids(results)


def test_batch_with_one_malformed_task_accepts_nothing(api: Caller, client: httpx.Client) -> None:
    tasks = [{"queue": QUEUE, "payload": 1}, {"queue": "not a name", "payload": 1}]
    response = client.post("/v1/tasks/batch", json={"tasks": tasks})
    assert refused(response) == (422, "invalid_request")
    assert response.json()["errors"][0]["loc"][:4] == ["body", "tasks", 1, "queue"]
    assert api.tasks() == []


def test_task_that_expired_before_it_was_reserved(api: Caller) -> None:
    accepted = api.enqueue(expires_at="2020-01-01T00:00:00Z", dedupe_key="key")
    assert api.reserve() == []
    task = api.task(accepted["id"])
    assert (task["status"], task["expires_at"]) == ("expired", "2020-01-01T00:00:00.000000Z")
    assert api.enqueue(dedupe_key="key")["existed"] is False
