"""PATCH and DELETE /v1/tasks/{id}."""

import httpx
import pytest

from tests.api.caller import Caller, Json, ids
from tests.api.checking import refused
from tests.api.test_look import finish


def test_edit_changes_what_is_given_and_returns_the_task(api: Caller) -> None:
    before = api.task(api.enqueue(id="task", payload=1, dedupe_key="key")["id"])
    edit = {
        "priority": -7,
        "available_at": "2100-01-01T00:00:00Z",
        "max_attempts": 9,
        "expires_at": "2101-01-01T00:00:00Z",
    }
    reply = api.client.patch("/v1/tasks/task", json=edit)
    assert reply.status_code == 200
    edited = reply.json()
    assert edited["updated_at"] > before["updated_at"]
    assert edited == {
        **before,
        "priority": -7,
        "available_at": "2100-01-01T00:00:00.000000Z",
        "max_attempts": 9,
        "expires_at": "2101-01-01T00:00:00.000000Z",
        "status": "scheduled",
        "updated_at": edited["updated_at"],
    }
    assert api.task("task") == edited


@pytest.mark.parametrize("edit", [{}, {"priority": None, "available_at": None, "max_attempts": None}])
def test_edit_of_nothing_changes_nothing_else(api: Caller, edit: Json) -> None:
    before = api.task(api.enqueue(id="task", priority=3, delay_seconds=60, ttl_seconds=600)["id"])
    after = api.client.patch("/v1/tasks/task", json=edit).json()
    assert {**after, "updated_at": None} == {**before, "updated_at": None}


def test_edit_makes_a_task_due(api: Caller) -> None:
    api.enqueue(id="task", delay_seconds=600)
    edited = api.client.patch("/v1/tasks/task", json={"available_at": "2020-01-01T00:00:00Z"}).json()
    assert edited["status"] == "ready"
    assert ids(api.reserve()) == ["task"]


def test_edited_priority_decides_the_order(api: Caller) -> None:
    api.enqueue_many({"id": "a"}, {"id": "b"})
    api.client.patch("/v1/tasks/b", json={"priority": 21})
    assert ids(api.reserve(limit=2)) == ["b", "a"]


def test_edit_into_the_past_expires(api: Caller) -> None:
    api.enqueue(id="task")
    assert api.client.patch("/v1/tasks/task", json={"expires_at": "2020-01-01T00:00:00Z"}).json()["status"] == "expired"
    assert api.reserve() == []


def test_edit_of_a_leased_task_is_refused(api: Caller) -> None:
    task = api.lease()
    before = api.everything()
    assert refused(api.client.patch(f"/v1/tasks/{task['id']}", json={"priority": 1})) == (409, "task_leased")
    assert api.everything() == before


def test_cancel(api: Caller) -> None:
    for task_id, extra in (("ready", {}), ("scheduled", {"delay_seconds": 60})):
        api.enqueue(id=task_id, **extra)
        response = api.client.delete(f"/v1/tasks/{task_id}")
        assert (response.status_code, response.json()) == (200, {"id": task_id, "status": "cancelled"})
        assert api.task(task_id)["status"] == "cancelled"
    assert api.reserve() == []


@pytest.mark.parametrize("parameters", [{}, {"force": "false"}])
def test_cancel_of_a_leased_task_without_force_is_refused(api: Caller, parameters: dict[str, str]) -> None:
    task = api.lease()
    before = api.everything()
    response = api.client.delete(f"/v1/tasks/{task['id']}", params=parameters)
    assert refused(response) == (409, "task_leased")
    assert api.everything() == before
    api.settle("ack", task)


@pytest.mark.parametrize("status", ["done", "dead", "expired", "cancelled"])
def test_finished_task_can_be_neither_edited_nor_cancelled(api: Caller, status: str) -> None:
    path = f"/v1/tasks/{finish(api, status)}"
    before = api.client.get(path).json()
    assert refused(api.client.patch(path, json={"priority": 1})) == (409, "task_finished")
    assert refused(api.client.delete(path)) == (409, "task_finished")
    assert refused(api.client.delete(path, params={"force": "true"})) == (409, "task_finished")
    assert api.client.get(path).json() == before


def test_unknown_task(client: httpx.Client) -> None:
    assert refused(client.patch("/v1/tasks/none", json={"priority": 1})) == (404, "task_not_found")
    assert refused(client.delete("/v1/tasks/none", params={"force": "true"})) == (404, "task_not_found")


def test_task_whose_lease_ran_out_can_be_edited_and_cancelled(api: Caller) -> None:
    path = f"/v1/tasks/{api.lose_lease()['id']}"
    assert api.client.patch(path, json={"priority": 1}).json()["status"] == "ready"
    assert api.client.delete(path).json()["status"] == "cancelled"
