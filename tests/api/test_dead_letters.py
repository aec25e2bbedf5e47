"""The routes below /v1/dlq."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, Json, connect, ids, new_tenant
from tests.api.checking import refused
from tests.service import Service


def test_dead_letter_is_the_task_and_why_it_died(api: Caller) -> None:
    task = api.die(reason="bad input", payload={"n": 1.5}, meta={"k": 1}, type="t", priority=7, dedupe_key="key")
    letter = api.get(f"/v1/dlq/{task['id']}")
    dead = api.task(task["id"])
    assert letter == {**dead, "task_id": task["id"], "reason": "bad input", "failed_at": dead["finished_at"]}
    assert api.dead_letters() == [letter]


def test_live_and_done_tasks_are_no_dead_letters(api: Caller) -> None:
    live, done = api.enqueue(queue="other"), api.lease()
    api.settle("ack", done)
    for task_id in (live["id"], done["id"]):
        assert refused(api.client.get(f"/v1/dlq/{task_id}")) == (404, "task_not_found")
        assert refused(api.client.delete(f"/v1/dlq/{task_id}")) == (404, "task_not_found")
        assert refused(api.client.post(f"/v1/dlq/{task_id}/requeue")) == (404, "task_not_found")
    assert api.dead_letters() == []


def test_newest_first_in_pages(api: Caller) -> None:
    dead = ids([api.die() for _ in range(5)])
    assert ids(api.dead_letters(limit=2)) == dead[::-1]
    first = api.get("/v1/dlq", limit=2)
    api.die()
    assert ids(api.dead_letters(limit=2, cursor=first["next_cursor"])) == dead[2::-1]


def make_letters(api: Caller) -> list[Json]:
    """Three dead letters, oldest first."""
    api.die(reason="Timeout after 100% of_it", queue="a", type="x")
    api.die(reason="timeout", queue="a", type="y")
    api.die(reason='odd \\ "quoted" ünï', queue="b", type="x")
    return api.dead_letters()[::-1]


@pytest.fixture(scope="module")
def graveyard(server: Service) -> Iterator[tuple[Caller, list[Json]]]:
    """A tenant whose dead letters are only looked at, and those."""
    with connect(server, new_tenant()) as client:
        yield Caller(client), make_letters(Caller(client))


FILTERS: dict[str, tuple[Json, list[int]]] = {
    "none": ({}, [0, 1, 2]),
    "queue": ({"queue": "a"}, [0, 1]),
    "other-case": ({"queue": "A"}, []),
    "topic": ({"topic": "b"}, [2]),
    "type": ({"type": "x"}, [0, 2]),
    "reason": ({"reason_contains": "imeout"}, [0, 1]),
    "reason-case": ({"reason_contains": "Timeout"}, [0]),
    "reason-percent": ({"reason_contains": "%"}, [0]),
    "reason-underscore": ({"reason_contains": "f_i"}, [0]),
    "reason-underscore-is-no-wildcard": ({"reason_contains": "100%_of"}, []),
    "reason-backslash": ({"reason_contains": "\\"}, [2]),
    "reason-quotes": ({"reason_contains": '"quoted" ünï'}, [2]),
    "reason-accents-count": ({"reason_contains": "uni"}, []),
    "reason-empty": ({"reason_contains": ""}, [0, 1, 2]),
    "all-of-them": ({"queue": "a", "topic": "a", "type": "x", "reason_contains": "100"}, [0]),
    "contradiction": ({"queue": "a", "topic": "b"}, []),
    "long-ago": ({"before": "2020-01-01T00:00:00Z"}, []),
    "since": ({"after": "2020-01-01T00:00:00+01:00"}, [0, 1, 2]),
}


@pytest.mark.parametrize(("given", "found"), FILTERS.values(), ids=FILTERS)
def test_filters(graveyard: tuple[Caller, list[Json]], given: Json, found: list[int]) -> None:
    api, letters = graveyard
    newest_first, count = [letters[index] for index in found[::-1]], len(found)
    assert api.dead_letters(**given) == api.dead_letters(**given, limit=1) == newest_first
    assert api.post("/v1/dlq/purge", {**given, "dry_run": True}) == {"purged": count}
    # The numbers of a real one.
    expected = {"requeued": count, "skipped": 0, "remaining": 0}
    assert api.post("/v1/dlq/requeue", {**given, "dry_run": True}) == expected
    assert api.everything() == ([], letters[::-1])


CHOSEN = ("none", "topic", "reason-percent", "reason-underscore-is-no-wildcard")


@pytest.mark.parametrize(("given", "found"), [FILTERS[name] for name in CHOSEN], ids=CHOSEN)
def test_requeue_sends_back_what_the_filters_mean(api: Caller, given: Json, found: list[int]) -> None:
    letters = make_letters(api)
    assert api.post("/v1/dlq/requeue", given) == {"requeued": len(found), "skipped": 0, "remaining": 0}
    assert sorted(ids(api.tasks())) == sorted(letters[index]["id"] for index in found)
    assert api.dead_letters() == _without(letters, found)


@pytest.mark.parametrize(("given", "found"), [FILTERS[name] for name in CHOSEN], ids=CHOSEN)
def test_purge_throws_away_what_the_filters_mean(api: Caller, given: Json, found: list[int]) -> None:
    letters = make_letters(api)
    assert api.post("/v1/dlq/purge", given) == {"purged": len(found)}
    assert api.everything() == ([], _without(letters, found))


def test_before_and_after_are_of_failed_at(graveyard: tuple[Caller, list[Json]]) -> None:
    api, (oldest, middle, newest) = graveyard
    assert newest in api.dead_letters(after=middle["failed_at"])
    assert oldest not in api.dead_letters(after=middle["failed_at"])
    assert oldest in api.dead_letters(before=middle["failed_at"])
    assert newest not in api.dead_letters(before=middle["failed_at"])


def test_requeue_keeps_what_the_task_is(api: Caller) -> None:
    task = api.die(payload={"n": 1.5}, meta={"k": 1}, priority=7, dedupe_key="key", type="t", max_attempts=3)
    assert api.post(f"/v1/dlq/{task['id']}/requeue") == {"requeued": 1, "skipped": 0, "remaining": 0}
    again = api.task(task["id"])
    kept = ("id", "queue", "payload", "meta", "priority", "dedupe_key", "type", "max_attempts", "content_type")
    assert {name: again[name] for name in kept} == {name: task[name] for name in kept}
    assert (again["status"], again["attempts"], again["finished_at"]) == ("ready", 0, None)
    assert api.dead_letters() == []
    assert api.enqueue(dedupe_key="key")["existed"] is True
    assert ids(api.reserve()) == [task["id"]]


@pytest.mark.parametrize("form", ["single", "many"])
def test_requeue_without_reset_allows_one_attempt_more(api: Caller, form: str) -> None:
    task = api.lease(max_attempts=2)
    api.settle("nack", task, delay_seconds=0)
    [task] = api.reserve()
    api.settle("nack", task)
    path = f"/v1/dlq/{task['id']}/requeue" if form == "single" else "/v1/dlq/requeue"
    assert api.post(path, {"reset_attempts": False})["requeued"] == 1
    again = api.task(task["id"])
    assert (again["status"], again["attempts"], again["max_attempts"]) == ("ready", 2, 3)
    [task] = api.reserve()
    assert api.settle("nack", task)["status"] == "dead"


@pytest.mark.parametrize("form", ["single", "many"])
def test_requeue_with_a_delay(api: Caller, form: str) -> None:
    task = api.die()
    path = f"/v1/dlq/{task['id']}/requeue" if form == "single" else "/v1/dlq/requeue"
    assert api.post(path, {"delay_seconds": 60})["requeued"] == 1
    assert api.task(task["id"])["status"] == "scheduled"
    assert api.reserve() == []


@pytest.mark.parametrize("body", [None, {}, {"reset_attempts": True, "dry_run": False}])
def test_requeue_one_with_any_body(api: Caller, body: Json | None) -> None:
    task = api.die()
    assert api.post(f"/v1/dlq/{task['id']}/requeue", body)["requeued"] == 1
    assert api.task(task["id"])["status"] == "ready"


def test_requeue_without_a_body_is_for_the_whole_tenant(api: Caller) -> None:
    api.die(queue="a")
    api.die(queue="b")
    reply = api.client.post("/v1/dlq/requeue")
    assert reply.json() == {"requeued": 2, "skipped": 0, "remaining": 0}


def test_purge_without_a_body_is_for_the_whole_tenant(api: Caller) -> None:
    api.die(queue="a")
    api.die(queue="b")
    assert api.client.post("/v1/dlq/purge").json() == {"purged": 2}
    assert api.dead_letters() == []


def test_dry_run_of_one(api: Caller) -> None:
    task = api.die()
    before = api.everything()
    assert api.post(f"/v1/dlq/{task['id']}/requeue", {"dry_run": True}) == {
        "requeued": 1,
        "skipped": 0,
        "remaining": 0,
    }
    assert api.everything() == before


def test_requeue_by_ids(api: Caller) -> None:
    first, second, third = ids([api.die() for _ in range(3)])
    reply = api.post("/v1/dlq/requeue", {"ids": [third, first, "unknown"]})
    assert reply == {"requeued": 2, "skipped": 0, "remaining": 0}
    assert ids(api.dead_letters()) == [second]
    assert api.post("/v1/dlq/requeue", {"ids": [second], "queue": "other"})["requeued"] == 0
    assert api.post("/v1/dlq/requeue", {"ids": []})["requeued"] == 0
    assert ids(api.dead_letters()) == [second]


def test_requeue_up_to_a_limit(api: Caller) -> None:
    dead = ids([api.die() for _ in range(3)])
    assert api.post("/v1/dlq/requeue", {"limit": 2}) == {"requeued": 2, "skipped": 0, "remaining": 1}
    assert len(api.tasks()) == 2
    [left] = api.dead_letters()
    assert left["id"] in dead


def test_dry_run_up_to_a_limit(api: Caller) -> None:
    for _ in range(3):
        api.die()
    reply = api.post("/v1/dlq/requeue", {"limit": 2, "dry_run": True})
    assert reply == {"requeued": 2, "skipped": 0, "remaining": 1}
    assert len(api.dead_letters()) == 3


def test_requeue_of_a_task_whose_key_is_held(api: Caller) -> None:
    task = api.die(dedupe_key="key")
    api.enqueue(dedupe_key="key", id="holder")
    before = api.everything()
    assert refused(api.client.post(f"/v1/dlq/{task['id']}/requeue")) == (409, "dedupe_conflict")
    assert refused(api.client.post(f"/v1/dlq/{task['id']}/requeue", json={"dry_run": True})) == (409, "dedupe_conflict")
    expected = {"requeued": 0, "skipped": 1, "remaining": 1}
    assert api.post("/v1/dlq/requeue", {"dry_run": True}) == api.post("/v1/dlq/requeue") == expected
    assert api.everything() == before


def test_requeue_of_a_task_whose_id_is_taken(api: Caller) -> None:
    api.die(id="task")
    api.enqueue(id="task", payload="live")
    before = api.everything()
    assert refused(api.client.post("/v1/dlq/task/requeue")) == (409, "task_exists")
    assert api.post("/v1/dlq/requeue") == {"requeued": 0, "skipped": 1, "remaining": 1}
    assert api.everything() == before
    assert api.task("task")["payload"] == "live"
    assert api.get("/v1/dlq/task")["payload"] is None


def test_requeue_of_two_with_the_same_key_sends_one_back(api: Caller) -> None:
    for _ in range(2):
        api.die(dedupe_key="key")
    assert api.post("/v1/dlq/requeue") == {"requeued": 1, "skipped": 1, "remaining": 1}
    assert (len(api.tasks()), len(api.dead_letters())) == (1, 1)


def test_delete_of_one(api: Caller) -> None:
    gone, left = api.die(), api.die()
    response = api.client.delete(f"/v1/dlq/{gone['id']}")
    assert response.status_code == 200
    assert refused(api.client.get(f"/v1/dlq/{gone['id']}")) == (404, "task_not_found")
    assert refused(api.client.delete(f"/v1/dlq/{gone['id']}")) == (404, "task_not_found")
    assert ids(api.dead_letters()) == [left["id"]]


def test_many_at_once(api: Caller) -> None:
    api.enqueue_many(*[{}] * 1000)
    items = [{"id": task["id"], "lease_token": task["lease_token"], "reason": "no"} for task in api.reserve(limit=1000)]
    api.settle_many("fail", *items)
    assert api.post("/v1/dlq/requeue", {"limit": 600}) == {"requeued": 600, "skipped": 0, "remaining": 400}
    assert api.post("/v1/dlq/purge") == {"purged": 400}
    assert len(api.tasks(limit=500)) == 600


def test_requeued_task_can_be_reserved_and_its_history_stays(api: Caller) -> None:
    task = api.die(id="task", reason="first")
    api.post("/v1/dlq/task/requeue")
    [again] = api.reserve()
    api.settle("ack", again)
    assert api.task("task")["status"] == "done"
    assert [attempt["reason"] for attempt in api.attempts("task")] == ["first", None]
    assert again["created_at"] == task["created_at"]


@pytest.mark.parametrize("path", ["/v1/dlq/none", "/v1/dlq/none/requeue"])
def test_unknown_dead_letter(client: httpx.Client, path: str) -> None:
    method = "POST" if path.endswith("requeue") else "DELETE"
    assert refused(client.request(method, path)) == (404, "task_not_found")


def test_dead_by_lost_lease_is_in_the_list_at_once(api: Caller) -> None:
    lost = api.lose_lease(max_attempts=1)
    [letter] = api.dead_letters(queue=QUEUE)
    assert (letter["id"], letter["reason"], letter["failed_at"]) == (lost["id"], "lease expired", lost["lease_until"])


def _without(letters: list[Json], found: list[int]) -> list[Json]:
    """The rest of the letters, newest first."""
    return [letter for index, letter in enumerate(letters) if index not in found][::-1]
