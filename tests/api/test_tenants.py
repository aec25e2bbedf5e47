"""Tenants see nothing of each other, in any route."""

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, Json, ids, lease_of
from tests.api.checking import refused
from tests.api.test_settle import FIELDS


def test_default_tenant(api: Caller) -> None:
    with httpx.Client(base_url=api.client.base_url, verify=False) as nobody:
        accepted = nobody.post("/v1/tasks", json={"queue": QUEUE, "payload": 1}).json()
        task = nobody.get(f"/v1/tasks/{accepted['id']}").json()
        named = nobody.get(f"/v1/tasks/{accepted['id']}", headers={"X-Tenant-Id": "default"}).json()
    assert task["tenant_id"] == "default"
    assert named == task
    assert refused(api.client.get(f"/v1/tasks/{accepted['id']}")) == (404, "task_not_found")


def test_tenants_are_case_sensitive(api: Caller) -> None:
    accepted = api.enqueue()
    response = api.client.get(f"/v1/tasks/{accepted['id']}", headers={"X-Tenant-Id": api.tenant.upper()})
    assert refused(response) == (404, "task_not_found")


def test_ids_and_keys_are_the_tenants_own(api: Caller, other_api: Caller) -> None:
    api.enqueue(id="task", dedupe_key="key", payload="mine")
    assert other_api.enqueue(id="task", dedupe_key="key", payload="theirs")["existed"] is False
    assert [task["payload"] for task in (api.task("task"), other_api.task("task"))] == ["mine", "theirs"]
    assert [task["payload"] for task in other_api.reserve(limit=10)] == ["theirs"]
    assert api.task("task")["status"] == "ready"


def test_reserve_gives_nothing_of_another_tenant(api: Caller, other_api: Caller) -> None:
    api.enqueue()
    api.enqueue(delay_seconds=60)
    reply = other_api.post("/v1/reserve", {"queues": [QUEUE], "limit": 10})
    assert (reply["tasks"], reply["next_available_at"]) == ([], None)


def test_lists_show_nothing_of_another_tenant(api: Caller, other_api: Caller) -> None:
    api.settle("ack", api.lease())
    api.die()
    api.client.delete(f"/v1/tasks/{api.enqueue()['id']}")
    api.enqueue(expires_at="2020-01-01T00:00:00Z", queue="other")
    api.enqueue()
    for status in ("", "ready", "done", "dead", "expired", "cancelled"):
        assert len(api.tasks(status=status)) == 1
        assert other_api.tasks(status=status) == []
    assert other_api.dead_letters() == []


@pytest.mark.parametrize("verb", FIELDS)
def test_token_is_of_no_use_to_another_tenant(api: Caller, other_api: Caller, verb: str) -> None:
    task = api.lease()
    before = api.everything()
    body = {"lease_token": task["lease_token"], **FIELDS[verb]}
    response = other_api.client.post(f"/v1/tasks/{task['id']}/{verb}", json=body)
    assert refused(response) == (404, "task_not_found")
    [result] = other_api.settle_many(verb, {**lease_of(task), **FIELDS[verb]})
    assert (result["ok"], result["code"]) == (False, "task_not_found")
    assert api.everything() == before


ROUTES: list[tuple[str, str, Json | None]] = [
    ("GET", "/v1/tasks/{id}", None),
    ("GET", "/v1/tasks/{id}/attempts", None),
    ("PATCH", "/v1/tasks/{id}", {"priority": 1}),
    ("DELETE", "/v1/tasks/{id}?force=true", None),
    ("GET", "/v1/dlq/{id}", None),
    ("POST", "/v1/dlq/{id}/requeue", {}),
    ("DELETE", "/v1/dlq/{id}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES])
def test_other_tenants_tasks_are_not_found(
    api: Caller, other_api: Caller, method: str, path: str, body: Json | None
) -> None:
    task = api.die() if "dlq" in path else api.lease()
    before = api.everything()
    response = other_api.client.request(method, path.format(id=task["id"]), json=body)
    assert refused(response) == (404, "task_not_found")
    assert api.everything() == before


def test_requeue_and_purge_stay_within_the_tenant(api: Caller, other_api: Caller) -> None:
    task = api.die()
    before = api.everything()
    assert other_api.post("/v1/dlq/requeue", {"ids": [task["id"]]})["requeued"] == 0
    assert other_api.post("/v1/dlq/requeue")["requeued"] == 0
    assert other_api.post("/v1/dlq/purge") == {"purged": 0}
    assert api.everything() == before
    other_api.die(id=task["id"])
    assert other_api.post("/v1/dlq/purge") == {"purged": 1}
    assert ids(api.dead_letters()) == [task["id"]]


def test_cursor_of_another_tenant_shows_nothing_of_it(api: Caller, other_api: Caller) -> None:
    api.enqueue_many({}, {}, {})
    cursor = api.get("/v1/tasks", limit=1)["next_cursor"]
    assert other_api.tasks(cursor=cursor) == []
