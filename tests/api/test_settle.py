"""Extend, ack, nack, release and fail, one task at a time and in batches."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.api.caller import QUEUE, Caller, Json, instant, lease_of
from tests.api.checking import refused

# What each verb needs beside the token.
FIELDS: dict[str, Json] = {
    "extend": {"lease_seconds": 60},
    "ack": {},
    "nack": {},
    "release": {},
    "fail": {"reason": "broken"},
}
VERBS = tuple(FIELDS)


def test_extend_ends_the_lease_that_long_from_now(api: Caller) -> None:
    task = api.lease(lease_seconds=10)
    reply = api.settle("extend", task, lease_seconds=100.5)
    assert set(reply) == {"lease_until", "server_time"}
    assert instant(reply["lease_until"]) - instant(reply["server_time"]) == timedelta(seconds=100.5)
    assert api.task(task["id"])["lease_until"] == reply["lease_until"]
    shorter = api.settle("extend", task, lease_seconds=5)
    assert shorter["lease_until"] < reply["lease_until"]


def test_ack(api: Caller) -> None:
    task = api.lease()
    assert api.settle("ack", task, result={"ok": [1, 2]}) == {"id": task["id"], "status": "done"}
    done = api.task(task["id"])
    assert (done["status"], done["result"], done["attempts"]) == ("done", {"ok": [1, 2]}, 1)
    assert (done["lease_owner"], done["lease_until"]) == ("worker-1", None)
    assert done["finished_at"] >= task["first_leased_at"]
    assert api.tasks() == []
    assert api.tasks(status="done") == [done]


@pytest.mark.parametrize("given", [{}, {"result": None}], ids=["absent", "null"])
def test_ack_without_a_result(api: Caller, given: Json) -> None:
    task = api.lease()
    api.settle("ack", task, **given)
    assert api.task(task["id"])["result"] is None


def test_nack_with_a_delay(api: Caller) -> None:
    task = api.lease()
    reply = api.settle("nack", task, error="no luck", delay_seconds=60)
    waiting = api.task(task["id"])
    assert reply == {
        "id": task["id"],
        "status": "scheduled",
        "attempts": 1,
        "available_at": waiting["available_at"],
    }
    assert (waiting["status"], waiting["attempts"]) == ("scheduled", 1)
    assert (waiting["last_error"], waiting["last_error_at"]) == ("no luck", waiting["updated_at"])
    assert instant(waiting["available_at"]) - instant(waiting["updated_at"]) == timedelta(seconds=60)
    assert (waiting["lease_owner"], waiting["lease_until"]) == (None, None)


def test_nack_with_no_delay_at_all_is_ready_at_once(api: Caller) -> None:
    task = api.lease()
    assert api.settle("nack", task, delay_seconds=0)["status"] == "ready"
    assert api.reserve()[0]["attempts"] == 2


def test_nack_until_an_instant(api: Caller) -> None:
    reply = api.settle("nack", api.lease(), retry_at="2100-01-01T00:00:00Z")
    assert (reply["status"], reply["available_at"]) == ("scheduled", "2100-01-01T00:00:00.000000Z")


def test_nack_backs_off_by_the_default_policy(api: Caller) -> None:
    task = api.lease()
    for expected in (5, 10, 20):
        reply = api.settle("nack", task)
        delay = _delay(api, task, reply)
        assert 0.8 * expected <= delay <= 1.2 * expected
        api.client.patch(f"/v1/tasks/{task['id']}", json={"available_at": "2020-01-01T00:00:00Z"})
        [task] = api.reserve()


@pytest.mark.parametrize(
    ("backoff", "delay"),
    [
        ({"base_seconds": 7, "jitter": 0}, 7),
        ({"base_seconds": 100, "max_seconds": 30, "jitter": 0}, 30),
        ({"base_seconds": 0, "jitter": 1}, 0),
        ({"factor": 1e308, "jitter": 0}, 5),
    ],
)
def test_nack_backs_off_as_the_worker_says(api: Caller, backoff: Json, delay: float) -> None:
    task = api.lease()
    reply = api.settle("nack", task, backoff=backoff)
    assert _delay(api, task, reply) == delay


@pytest.mark.parametrize("given", [{"error": "last straw"}, {}], ids=["with-error", "without"])
def test_nack_of_the_last_attempt_is_death(api: Caller, given: Json) -> None:
    task = api.lease(max_attempts=1)
    reply = api.settle("nack", task, delay_seconds=60, **given)
    assert (reply["status"], reply["attempts"]) == ("dead", 1)
    assert api.task(task["id"])["status"] == "dead"
    assert api.get(f"/v1/dlq/{task['id']}")["reason"] == given.get("error", "attempts used up")


def test_nack_never_kills_a_task_with_unlimited_attempts(api: Caller) -> None:
    api.enqueue(max_attempts=0)
    for attempt in range(1, 8):
        [task] = api.reserve()
        assert task["attempts"] == attempt
        assert api.settle("nack", task, delay_seconds=0)["status"] == "ready"


def test_release_gives_the_task_and_the_attempt_back(api: Caller) -> None:
    task = api.lease()
    assert api.settle("release", task) == {"id": task["id"], "status": "ready"}
    waiting = api.task(task["id"])
    assert (waiting["status"], waiting["attempts"], waiting["available_at"]) == ("ready", 0, task["available_at"])
    assert (waiting["lease_owner"], waiting["lease_until"], waiting["last_error"]) == (None, None, None)


def test_fail_is_death_with_a_reason(api: Caller) -> None:
    task = api.lease()
    assert api.settle("fail", task, reason="bad input") == {"id": task["id"], "status": "dead"}
    dead = api.task(task["id"])
    assert (dead["status"], dead["last_error"], dead["lease_owner"]) == ("dead", "bad input", "worker-1")
    assert api.get(f"/v1/dlq/{task['id']}")["reason"] == "bad input"


def never_leased(api: Caller) -> Json:
    return {"id": api.enqueue()["id"], "lease_token": "never-given"}


def lost(api: Caller) -> Json:
    return api.lose_lease()


def lost_and_moved(api: Caller) -> Json:
    task = api.lose_lease()
    assert api.task(task["id"])["status"] == "ready"
    return task


def lost_for_good(api: Caller) -> Json:
    task = api.lose_lease(max_attempts=1)
    assert api.task(task["id"])["status"] == "dead"
    return task


def lost_under_another_token(api: Caller) -> Json:
    return {**api.lose_lease(), "lease_token": "never-given"}


def lost_to_another(api: Caller) -> Json:
    task = api.lose_lease()
    api.reserve(lease_seconds=60)
    return task


def under_another_token(api: Caller) -> Json:
    return {**api.lease(), "lease_token": "never-given"}


def released(api: Caller) -> Json:
    task = api.lease()
    api.settle("release", task)
    return task


def nacked(api: Caller) -> Json:
    task = api.lease()
    api.settle("nack", task)
    return task


def cancelled(api: Caller) -> Json:
    task = api.lease()
    api.client.delete(f"/v1/tasks/{task['id']}", params={"force": "true"})
    return task


def unknown(api: Caller) -> Json:
    return {"id": "unknown", "lease_token": "never-given"}


REFUSALS: dict[Callable[[Caller], Json], tuple[int, str]] = {
    unknown: (404, "task_not_found"),
    never_leased: (409, "task_not_leased"),
    released: (409, "task_not_leased"),
    nacked: (409, "task_not_leased"),
    cancelled: (409, "task_not_leased"),
    lost_under_another_token: (409, "task_not_leased"),
    lost: (409, "lease_expired"),
    lost_and_moved: (409, "lease_expired"),
    lost_for_good: (409, "lease_expired"),
    under_another_token: (409, "lease_mismatch"),
    lost_to_another: (409, "lease_mismatch"),
}


@pytest.mark.parametrize(("make", "refusal"), REFUSALS.items(), ids=[make.__name__ for make in REFUSALS])
def test_refusals_say_which_and_change_nothing(
    api: Caller, make: Callable[[Caller], Json], refusal: tuple[int, str]
) -> None:
    lease = lease_of(make(api))
    before = _live(api)
    for verb, fields in FIELDS.items():
        path = f"/v1/tasks/{lease['id']}/{verb}"
        single = api.client.post(path, json={"lease_token": lease["lease_token"], **fields})
        assert (verb, *refused(single)) == (verb, *refusal)
        [result] = api.settle_many(verb, {**lease, **fields})
        assert (result["id"], result["ok"], result["code"]) == (lease["id"], False, refusal[1])
        assert set(result) == {"id", "ok", "code", "detail"}
        assert result["detail"]
    assert _live(api) == before


@pytest.mark.parametrize("verb", ["ack", "fail"])
def test_repeat_with_the_same_token_is_a_success_again(api: Caller, verb: str) -> None:
    task, extra = api.lease(), {"result": 1} if verb == "ack" else {"reason": "first"}
    first = api.settle(verb, task, **extra)
    before = api.task(task["id"]), api.everything()
    again = {"result": 2} if verb == "ack" else {"reason": "second"}
    assert api.settle(verb, task, **again) == first
    assert api.settle_many(verb, {**lease_of(task), **again}) == [{"ok": True, **first}]
    assert (api.task(task["id"]), api.everything()) == before


@pytest.mark.parametrize("verb", ["nack", "release"])
def test_repeat_of_other_verbs_is_refused(api: Caller, verb: str) -> None:
    task = api.lease()
    api.settle(verb, task)
    again = api.client.post(f"/v1/tasks/{task['id']}/{verb}", json={"lease_token": task["lease_token"]})
    assert refused(again) == (409, "task_not_leased")


@pytest.mark.parametrize(("first", "second"), [("ack", "fail"), ("fail", "ack"), ("ack", "nack"), ("fail", "extend")])
def test_settled_task_is_not_leased_for_other_verbs(api: Caller, first: str, second: str) -> None:
    task = api.lease()
    api.settle(first, task, **FIELDS[first])
    before = api.task(task["id"])
    body = {"lease_token": task["lease_token"], **FIELDS[second]}
    assert refused(api.client.post(f"/v1/tasks/{task['id']}/{second}", json=body)) == (409, "task_not_leased")
    assert api.task(task["id"]) == before


def test_repeated_fail_of_a_task_that_was_requeued(api: Caller) -> None:
    task = api.die()
    api.post(f"/v1/dlq/{task['id']}/requeue")
    assert api.settle("fail", task, reason="again") == {"id": task["id"], "status": "dead"}
    assert api.task(task["id"])["status"] == "ready"


def _of(status: str) -> Callable[[Json], Json]:
    return lambda task: {"id": task["id"], "ok": True, "status": status}


BATCH_RESULTS: dict[str, Callable[[Json], Json]] = {
    "ack": _of("done"),
    "release": _of("ready"),
    "fail": _of("dead"),
}


@pytest.mark.parametrize("verb", BATCH_RESULTS)
def test_batch_answers_each_in_input_order(api: Caller, verb: str) -> None:
    first, second = api.lease(id="b"), api.lease(id="a")
    refused_item = {"id": "unknown", "lease_token": "x"}
    items = [{**lease, **FIELDS[verb]} for lease in (lease_of(first), refused_item, lease_of(second))]
    results = api.settle_many(verb, *items)
    assert [result["id"] for result in results] == ["b", "unknown", "a"]
    assert results[1]["code"] == "task_not_found"
    assert [results[0], results[2]] == [BATCH_RESULTS[verb](first), BATCH_RESULTS[verb](second)]


def test_batch_of_nacks(api: Caller) -> None:
    again, last = api.lease(), api.lease(max_attempts=1)
    results = api.settle_many(
        "nack",
        {**lease_of(again), "retry_at": "2100-01-01T00:00:00Z"},
        {**lease_of(last), "error": "over", "backoff": {"factor": 3}},
    )
    assert results == [
        {
            "id": again["id"],
            "ok": True,
            "status": "scheduled",
            "attempts": 1,
            "available_at": "2100-01-01T00:00:00.000000Z",
        },
        {"id": last["id"], "ok": True, "status": "dead", "attempts": 1, "available_at": last["available_at"]},
    ]


def test_batch_of_extends(api: Caller) -> None:
    tasks = [api.lease() for _ in range(2)]
    results = api.settle_many("extend", *({**lease_of(task), "lease_seconds": 500} for task in tasks))
    assert [result["id"] for result in results] == [task["id"] for task in tasks]
    for result in results:
        assert set(result) == {"id", "ok", "lease_until", "server_time"}
        assert api.task(result["id"])["lease_until"] == result["lease_until"]


def test_batch_with_the_same_ack_twice(api: Caller) -> None:
    task = api.lease()
    results = api.settle_many("ack", lease_of(task), lease_of(task))
    assert [(result["ok"], result["status"]) for result in results] == [(True, "done")] * 2
    assert [attempt["attempt_no"] for attempt in api.attempts(task["id"])] == [1]


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_batch_with_a_wrong_token_before_and_behind_the_right_one(verb: str, api: Caller) -> None:
    task = api.lease()
    wrong = {"id": task["id"], "lease_token": "wrong"}
    before, _, behind = api.settle_many(verb, wrong, lease_of(task), wrong)
    assert (before["code"], behind["code"]) == ("lease_mismatch", "task_not_leased")


def test_batch_with_right_and_wrong_token_of_one_task(api: Caller) -> None:
    task = api.lease()
    wrong, right = api.settle_many("ack", {**lease_of(task), "lease_token": "wrong"}, lease_of(task))
    assert (wrong["ok"], wrong["code"]) == (False, "lease_mismatch")
    assert (right["ok"], right["status"]) == (True, "done")


def test_batches_of_a_thousand(api: Caller) -> None:
    api.enqueue_many(*[{}] * 1000)
    tasks = api.reserve(limit=1000)
    for verb in ("extend", "nack", "release", "ack"):
        extra = {"delay_seconds": 0} if verb == "nack" else FIELDS[verb]
        results = api.settle_many(verb, *({**lease_of(task), **extra} for task in tasks))
        assert [(result["id"], result["ok"]) for result in results] == [(task["id"], True) for task in tasks]
        if verb in {"nack", "release"}:
            tasks = api.reserve(limit=1000)
            assert len(tasks) == 1000


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("count", [0, 1001])
def test_batch_of_a_wrong_size_is_refused(client: httpx.Client, verb: str, count: int) -> None:
    items = [{"id": "a", "lease_token": "b", **FIELDS[verb]}] * count
    assert refused(client.post(f"/v1/tasks/{verb}", json={"items": items})) == (422, "invalid_request")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("flaw", [{"id": "not an id"}, {"lease_token": 1}, {"surprise": 1}])
def test_batch_with_one_malformed_item_settles_nothing(api: Caller, verb: str, flaw: Json) -> None:
    good, bad = ({**lease_of(api.lease()), **FIELDS[verb]} for _ in range(2))
    before = api.everything()
    response = api.client.post(f"/v1/tasks/{verb}", json={"items": [good, {**bad, **flaw}]})
    assert refused(response) == (422, "invalid_request")
    assert response.json()["errors"][0]["loc"][:3] == ["body", "items", 1]
    assert api.everything() == before


LONG = "ü✓𝄞" * 20_000
ERRORS: dict[str, tuple[str, str]] = {
    "empty": ("", ""),
    "nul": ("a\x00b", "a\N{REPLACEMENT CHARACTER}b"),
    "lone-surrogate": ("a\ud800b", "a\N{REPLACEMENT CHARACTER}b"),
    "exactly-8-KiB": ("x" * 8192, "x" * 8192),
    "one-over": ("x" * 8193, "x" * 8192),
    "100-KiB": ("x" * 102_400, "x" * 8192),
    "cut-at-a-character": (LONG, LONG.encode()[:8192].decode(errors="ignore")),
    "not-latin": ("日本語 \U0001f4a5 'quoted' \\ %s :x", "日本語 \U0001f4a5 'quoted' \\ %s :x"),
}


@pytest.mark.parametrize(("given", "kept"), ERRORS.values(), ids=ERRORS)
def test_reporting_a_failure_never_fails(api: Caller, given: str, kept: str) -> None:
    nacked, failed = api.lease(), api.lease()
    api.settle("nack", nacked, error=given)
    api.settle("fail", failed, reason=given)
    assert api.task(nacked["id"])["last_error"] == kept
    assert api.attempts(nacked["id"])[0]["reason"] == kept
    assert api.get(f"/v1/dlq/{failed['id']}")["reason"] == kept
    again = [api.lease(), api.lease()]
    results = api.settle_many("fail", *({**lease_of(task), "reason": given} for task in again))
    assert [result["ok"] for result in results] == [True, True]


def test_forced_cancel_voids_the_token(api: Caller) -> None:
    task = cancelled(api)
    assert api.task(task["id"])["status"] == "cancelled"
    assert api.reserve() == []


def test_expired_while_leased_is_seen_when_it_is_given_back(api: Caller) -> None:
    task = api.lease(ttl_seconds=0.2)
    assert api.task(task["id"])["status"] == "leased"
    accepted: Any = api.reserve(queues=["nothing"], wait_seconds=0.4)
    assert accepted == []
    assert api.settle("nack", task, delay_seconds=0)["status"] == "expired"
    assert api.reserve(queues=[QUEUE]) == []


def _live(api: Caller) -> list[tuple[object, ...]]:
    """What a refused call must not change; the list itself moves nothing."""
    seen = ("id", "status", "attempts", "available_at", "lease_until", "lease_owner")
    return [tuple(task[name] for name in seen) for task in api.tasks()]


def _delay(api: Caller, task: Json, reply: Json) -> float:
    """How long after the nack the task is due again."""
    assert reply["status"] in {"scheduled", "ready"}
    return (instant(reply["available_at"]) - instant(api.task(task["id"])["updated_at"])).total_seconds()
