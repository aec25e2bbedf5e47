"""Requeues at a rate: they go on in the background, tell how far they are, and can be stopped."""

import time
from collections.abc import Iterator

import pytest

from tests.api.caller import Json, ids, new_tenant
from tests.api.checking import refused
from tests.service import Service
from tests.waiting.topology import TopologyCaller, connect

PATIENCE_SECONDS = 60.0
NO_OPERATION = (404, "operation_not_found")


@pytest.fixture
def api(server: Service) -> Iterator[TopologyCaller]:
    with connect(server, new_tenant()) as client:
        yield TopologyCaller(client)


def make_letters(api: TopologyCaller, count: int, **fields: str) -> list[str]:
    """Dead letters, the oldest first."""
    accepted = api.enqueue_many(*({**fields} for _ in range(count)))
    leased = api.reserve(queues=[accepted[0]["queue"]], limit=count)
    assert len(leased) == count
    items = [{"id": task["id"], "lease_token": task["lease_token"], "reason": "broken"} for task in leased]
    assert all(result["ok"] for result in api.settle_many("fail", *items))
    return ids(leased)


def start(api: TopologyCaller, **body: object) -> Json:
    """An operation that has begun."""
    response = api.client.post("/v1/dlq/requeue", json=body)
    assert response.status_code == 202, response.text
    operation: Json = response.json()
    assert response.headers["Location"] == f"/v1/operations/{operation['id']}"
    assert operation["status"] == "running"
    return operation


def ended(api: TopologyCaller, operation: Json) -> Json:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        now = api.get(f"/v1/operations/{operation['id']}")
        if now["status"] != "running":
            return now
        assert time.monotonic() < deadline
        time.sleep(0.05)


def progress(operation: Json) -> tuple[str, int, int, int]:
    return operation["status"], operation["requeued"], operation["skipped"], operation["remaining"]


def test_it_requeues_everything(api: TopologyCaller) -> None:
    letters = make_letters(api, 7)
    operation = start(api, rate_per_second=1000)
    assert (operation["rate_per_second"], operation["finished_at"]) == (1000, None)
    assert operation["requeued"] + operation["remaining"] == 7
    done = ended(api, operation)
    assert progress(done) == ("done", 7, 0, 0)
    assert done["finished_at"] >= done["created_at"] == operation["created_at"]
    tasks = api.tasks()
    assert sorted(ids(tasks)) == sorted(letters)
    assert {(task["status"], task["attempts"]) for task in tasks} == {("ready", 0)}
    assert api.dead_letters() == []


def test_nothing_to_requeue(api: TopologyCaller) -> None:
    assert progress(ended(api, start(api, rate_per_second=5))) == ("done", 0, 0, 0)


def test_it_keeps_the_rate_and_tells_how_far_it_is(api: TopologyCaller) -> None:
    make_letters(api, 30)
    operation = start(api, rate_per_second=5)
    seen: list[Json] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    started = time.monotonic()
    while not seen or seen[-1]["requeued"] < 15:
        assert time.monotonic() < deadline
        seen.append(api.get(f"/v1/operations/{operation['id']}"))
        time.sleep(0.02)
    # Fifteen at five a second, of which the first second's worth may come at once.
    assert time.monotonic() - started > 1.5
    assert all(now["requeued"] + now["remaining"] == 30 for now in seen)
    told = [now["requeued"] for now in seen]
    assert told == sorted(told)
    assert len(set(told)) > 2
    assert progress(api.delete(f"/v1/operations/{operation['id']}"))[0] == "stopped"


def test_delete_stops_it(api: TopologyCaller) -> None:
    letters = make_letters(api, 20)
    operation = start(api, rate_per_second=2)
    stopped = api.delete(f"/v1/operations/{operation['id']}")
    assert stopped["status"] == "stopped"
    assert stopped["finished_at"] is not None
    assert stopped["requeued"] + stopped["remaining"] == 20
    time.sleep(2.5)
    assert api.get(f"/v1/operations/{operation['id']}") == stopped
    assert len(api.tasks()) == stopped["requeued"]
    assert len(api.dead_letters()) == stopped["remaining"] > 0
    # What is left can be asked for again.
    assert progress(ended(api, start(api, rate_per_second=1000)))[:2] == ("done", stopped["remaining"])
    assert sorted(ids(api.tasks())) == sorted(letters)


def test_one_that_has_ended_stays_as_it_ended(api: TopologyCaller) -> None:
    make_letters(api, 1)
    done = ended(api, start(api, rate_per_second=100))
    assert api.delete(f"/v1/operations/{done['id']}") == done
    assert api.delete(f"/v1/operations/{done['id']}") == done


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_operation_that_is_not_there(api: TopologyCaller, server: Service, method: str) -> None:
    operation = start(api, rate_per_second=1)
    assert refused(api.client.request(method, "/v1/operations/none")) == NO_OPERATION
    with connect(server, new_tenant()) as other:
        assert refused(other.request(method, f"/v1/operations/{operation['id']}")) == NO_OPERATION


def test_filters_and_what_is_asked_of_the_requeue(api: TopologyCaller) -> None:
    wanted = make_letters(api, 3, queue="a", type="x")
    others = [*make_letters(api, 2, queue="a", type="y"), *make_letters(api, 2, queue="b", type="x")]
    body = {"queue": "a", "type": "x", "reason_contains": "rok", "after": "2020-01-01T00:00:00Z"}
    operation = start(api, **body, rate_per_second=50, delay_seconds=3600, reset_attempts=False)
    assert progress(ended(api, operation)) == ("done", 3, 0, 0)
    tasks = api.tasks()
    assert sorted(ids(tasks)) == sorted(wanted)
    assert {(task["status"], task["attempts"]) for task in tasks} == {("scheduled", 1)}
    assert sorted(ids(api.dead_letters())) == sorted(others)


def test_ids(api: TopologyCaller) -> None:
    letters = make_letters(api, 5)
    operation = start(api, ids=letters[1:3], rate_per_second=50)
    assert progress(ended(api, operation)) == ("done", 2, 0, 0)
    assert sorted(ids(api.tasks())) == sorted(letters[1:3])


def test_limit(api: TopologyCaller) -> None:
    letters = make_letters(api, 6)
    operation = start(api, limit=4, rate_per_second=50)
    assert progress(ended(api, operation)) == ("done", 4, 0, 2)
    assert len(api.tasks()) == 4
    assert set(ids(api.tasks())) <= set(letters)


def test_one_whose_key_is_taken_is_skipped(api: TopologyCaller) -> None:
    taken = api.die(dedupe_key="k")
    free = api.die(dedupe_key="l")
    holder = api.enqueue(dedupe_key="k")
    assert progress(ended(api, start(api, rate_per_second=50))) == ("done", 1, 1, 1)
    assert sorted(ids(api.tasks())) == sorted([free["id"], holder["id"]])
    assert ids(api.dead_letters()) == [taken["id"]]


def test_one_that_dies_meanwhile_is_not_requeued_again(api: TopologyCaller) -> None:
    """The letters that were there at the start are what it is about: else it would never end."""
    make_letters(api, 6)
    operation = start(api, rate_per_second=4)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while api.get(f"/v1/operations/{operation['id']}")["status"] == "running":
        assert time.monotonic() < deadline
        for task in api.reserve(limit=10):
            api.settle("fail", task, reason="again")
        time.sleep(0.1)
    assert api.get(f"/v1/operations/{operation['id']}")["requeued"] == 6


def test_dry_run_changes_nothing(api: TopologyCaller) -> None:
    make_letters(api, 3)
    response = api.client.post("/v1/dlq/requeue", json={"rate_per_second": 100, "dry_run": True})
    assert response.status_code == 200
    assert response.json() == {"requeued": 3, "skipped": 0, "remaining": 0}
    time.sleep(1.5)
    assert len(api.dead_letters()) == 3


def test_two_at_once_requeue_each_letter_once(api: TopologyCaller) -> None:
    letters = make_letters(api, 40)
    first, second = start(api, rate_per_second=50), start(api, rate_per_second=50)
    done = [ended(api, operation) for operation in (first, second)]
    assert sum(operation["requeued"] for operation in done) == 40
    assert sorted(ids(api.tasks())) == sorted(letters)


@pytest.mark.parametrize("rate", [0, -1, "1", True, 1e300, [1]])
def test_bad_rates(api: TopologyCaller, rate: object) -> None:
    letters = make_letters(api, 2)
    assert refused(api.client.post("/v1/dlq/requeue", json={"rate_per_second": rate})) == (422, "invalid_request")
    time.sleep(1.2)
    assert sorted(ids(api.dead_letters())) == sorted(letters)
