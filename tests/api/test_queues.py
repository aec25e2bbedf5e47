"""Queues: declare, look, change, delete, pause, purge, clean up, count."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.api.caller import Json, ids, instant, new_tenant
from tests.api.checking import refused
from tests.service import Service
from tests.waiting.topology import TopologyCaller, connect

DEFAULTS: Json = {
    "topic": None,
    "exclusive": False,
    "keep_alive_seconds": 60,
    "max_attempts": 5,
    "lease_seconds": 30,
    "max_lease_seconds": 43200,
    "backoff": {"base_seconds": 5, "factor": 2, "max_seconds": 3600, "jitter": 0.2},
    "rate_per_second": None,
    "concurrency_limit": None,
    "paused": False,
    "history_days": 14,
    "dlq_days": None,
}
OTHERS: Json = {
    "keep_alive_seconds": 7.5,
    "max_attempts": 0,
    "lease_seconds": 12.5,
    "max_lease_seconds": 100,
    "backoff": {"base_seconds": 0, "factor": 1, "max_seconds": 0.5, "jitter": 1},
    "rate_per_second": 0.25,
    "concurrency_limit": 3,
    "paused": True,
    "history_days": 0,
    "dlq_days": 1.5,
}
ZEROS = dict.fromkeys(("ready", "scheduled", "leased", "done", "dead", "expired", "cancelled"), 0)
EMPTY: Json = {
    **ZEROS,
    "ready_by_priority": {},
    "oldest_ready_seconds": None,
    "next_available_at": None,
    "exact": True,
}
NO_QUEUE = (404, "queue_not_found")


@pytest.fixture
def api(server: Service) -> Iterator[TopologyCaller]:
    with connect(server, new_tenant()) as client:
        yield TopologyCaller(client)


def settings_of(queue: Json) -> Json:
    return {name: queue[name] for name in DEFAULTS}


def test_put_gives_what_is_not_said_its_default(api: TopologyCaller) -> None:
    response = api.client.put("/v1/queues/q", json={})
    assert (response.status_code, response.headers["Location"]) == (201, "/v1/queues/q")
    queue = response.json()
    assert (queue["name"], settings_of(queue), queue["keep_alive_until"]) == ("q", DEFAULTS, None)
    assert queue["created_at"] == queue["updated_at"]
    assert api.get("/v1/queues/q") == queue


def test_put_without_a_body(api: TopologyCaller) -> None:
    assert settings_of(api.put("/v1/queues/q", status=201)) == DEFAULTS


def test_put_sets_what_is_said(api: TopologyCaller) -> None:
    expected = {**DEFAULTS, **OTHERS}
    assert settings_of(api.put("/v1/queues/q", OTHERS, 201)) == expected
    assert settings_of(api.get("/v1/queues/q")) == expected


def test_a_second_put_sets_everything_anew(api: TopologyCaller) -> None:
    first = api.put("/v1/queues/q", OTHERS, 201)
    second = api.put("/v1/queues/q", {"max_attempts": 9}, 200)
    assert settings_of(second) == {**DEFAULTS, "max_attempts": 9}
    assert second["created_at"] == first["created_at"]
    assert api.get("/v1/queues/q") == second


@pytest.mark.parametrize("name", DEFAULTS)
def test_null_is_the_same_as_absent(api: TopologyCaller, name: str) -> None:
    expected = DEFAULTS if name != "history_days" else {**DEFAULTS, "history_days": None}
    assert settings_of(api.put("/v1/queues/q", {name: None}, 201)) == expected


def test_part_of_a_backoff(api: TopologyCaller) -> None:
    queue = api.put("/v1/queues/q", {"backoff": {"factor": 3}}, 201)
    assert queue["backoff"] == {**DEFAULTS["backoff"], "factor": 3}
    queue = api.patch("/v1/queues/q", {"backoff": {"jitter": 0}})
    assert queue["backoff"] == {**DEFAULTS["backoff"], "factor": 3, "jitter": 0}


def test_the_lease_is_no_longer_than_the_longest(api: TopologyCaller) -> None:
    assert api.put("/v1/queues/q", {"max_lease_seconds": 10}, 201)["lease_seconds"] == 10


@pytest.mark.parametrize("name", OTHERS)
def test_patch_changes_what_is_given(api: TopologyCaller, name: str) -> None:
    value = {"max_lease_seconds": 31}.get(name, OTHERS[name])
    api.put_queue("q")
    changed = api.patch("/v1/queues/q", {name: value})
    assert settings_of(changed) == {**DEFAULTS, name: value}
    assert api.get("/v1/queues/q") == changed


def test_patch_of_nothing_changes_nothing(api: TopologyCaller) -> None:
    api.put("/v1/queues/q", OTHERS)
    assert settings_of(api.patch("/v1/queues/q", {})) == {**DEFAULTS, **OTHERS}
    nulls = {name: None for name in OTHERS if name != "history_days"}
    assert settings_of(api.patch("/v1/queues/q", nulls)) == {**DEFAULTS, **OTHERS}


def test_history_can_be_kept_for_ever(api: TopologyCaller) -> None:
    api.put_queue("q")
    assert api.patch("/v1/queues/q", {"history_days": None})["history_days"] is None


def test_patch_to_a_lease_longer_than_the_longest(api: TopologyCaller) -> None:
    api.put_queue("q", lease_seconds=20, max_lease_seconds=50)
    for body in ({"lease_seconds": 51}, {"max_lease_seconds": 19}):
        assert refused(api.client.patch("/v1/queues/q", json=body)) == (422, "invalid_request")
    assert api.get("/v1/queues/q")["lease_seconds"] == 20


def test_topic_must_exist(api: TopologyCaller) -> None:
    assert refused(api.client.put("/v1/queues/q", json={"topic": "none"})) == (404, "topic_not_found")
    assert refused(api.client.get("/v1/queues/q")) == NO_QUEUE
    api.put_queue("q")
    assert refused(api.client.patch("/v1/queues/q", json={"topic": "none"})) == (404, "topic_not_found")
    assert settings_of(api.get("/v1/queues/q")) == DEFAULTS


ON_A_QUEUE: dict[str, tuple[str, str, Json | None]] = {
    "get": ("GET", "", None),
    "patch": ("PATCH", "", {}),
    "delete": ("DELETE", "", None),
    "keep-alive": ("POST", "/keep-alive", {"seconds": 5}),
}


@pytest.mark.parametrize(("method", "path", "body"), ON_A_QUEUE.values(), ids=ON_A_QUEUE)
def test_a_queue_that_nobody_declared(api: TopologyCaller, method: str, path: str, body: Json | None) -> None:
    for _ in range(2):
        assert refused(api.client.request(method, f"/v1/queues/work{path}", json=body)) == NO_QUEUE
        # A task in it makes no difference.
        api.enqueue()
    assert len(api.tasks()) == 2


def test_what_works_for_a_queue_that_nobody_declared(api: TopologyCaller) -> None:
    assert api.stats("work") == EMPTY
    assert api.post("/v1/queues/work/purge") == {"purged": 0}
    assert api.post("/v1/queues/work/cleanup") == {"deleted": 0}
    api.settle("ack", api.lease())
    api.enqueue()
    assert (api.stats("work")["ready"], api.stats("work")["done"]) == (1, 1)
    assert api.post("/v1/queues/work/purge") == {"purged": 1}
    assert api.post("/v1/queues/work/cleanup") == {"deleted": 1}
    assert api.get("/v1/queues")["items"] == []


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_pause_and_resume_declare(api: TopologyCaller, verb: str) -> None:
    api.enqueue()
    queue = api.post(f"/v1/queues/work/{verb}")
    assert settings_of(queue) == {**DEFAULTS, "paused": verb == "pause"}
    assert api.get("/v1/queues/work") == queue
    assert len(api.tasks()) == 1


def test_a_put_of_an_undeclared_queue_is_new_and_keeps_its_tasks(api: TopologyCaller) -> None:
    task = api.enqueue()
    api.put("/v1/queues/work", {}, 201)
    assert ids(api.reserve()) == [task["id"]]


def test_pause_and_resume(api: TopologyCaller) -> None:
    api.put("/v1/queues/work", {"max_attempts": 9})
    api.enqueue_many({}, {})
    [leased] = api.reserve()
    assert api.post("/v1/queues/work/pause")["paused"] is True
    reply = api.post("/v1/reserve", {"queues": ["work"]})
    assert reply["tasks"] == []
    # What runs goes on, and more can come.
    api.settle("ack", leased)
    api.enqueue()
    assert api.post("/v1/queues/work/pause")["paused"] is True
    queue = api.post("/v1/queues/work/resume")
    assert (queue["paused"], queue["max_attempts"]) == (False, 9)
    assert len(api.reserve(limit=10)) == 2


def test_a_paused_queue_does_not_hold_others_back(api: TopologyCaller) -> None:
    api.enqueue(queue="paused", priority=100)
    task = api.enqueue(queue="open")
    api.post("/v1/queues/paused/pause")
    assert ids(api.reserve(queues=["paused", "open"], limit=10)) == [task["id"]]


def test_tasks_take_what_they_do_not_say_from_their_queue(api: TopologyCaller) -> None:
    api.put_queue("work", max_attempts=2, lease_seconds=7, backoff={"base_seconds": 100, "jitter": 0})
    api.enqueue_many({}, {"max_attempts": 9})
    reply = api.post("/v1/reserve", {"queues": ["work"], "limit": 2})
    first, second = reply["tasks"]
    assert (first["max_attempts"], second["max_attempts"]) == (2, 9)
    assert instant(first["lease_until"]) - instant(reply["server_time"]) == timedelta(seconds=7)
    before = instant(reply["server_time"])
    delayed = instant(api.settle("nack", first)["available_at"]) - before
    assert timedelta(seconds=99) < delayed < timedelta(seconds=140)


def test_the_longest_lease(api: TopologyCaller) -> None:
    api.put_queue("work", max_lease_seconds=10)
    task = api.lease(lease_seconds=10)
    for body in ({"queues": ["work"], "lease_seconds": 10.5}, {"queues": ["free", "work"], "lease_seconds": 11}):
        assert refused(api.client.post("/v1/reserve", json=body)) == (422, "invalid_request")
    body = {"lease_token": task["lease_token"], "lease_seconds": 10.5}
    assert refused(api.client.post(f"/v1/tasks/{task['id']}/extend", json=body)) == (422, "invalid_request")
    api.settle("extend", task, lease_seconds=9)


def test_an_extend_that_is_too_long_spoils_only_itself(api: TopologyCaller) -> None:
    api.put_queue("work", max_lease_seconds=10)
    short, long = api.lease(lease_seconds=10), api.lease(lease_seconds=10)
    items = [
        {"id": task["id"], "lease_token": task["lease_token"], "lease_seconds": seconds}
        for task, seconds in ((long, 10.5), (short, 9))
    ]
    refusal, extended = api.post("/v1/tasks/extend", {"items": items})["results"]
    assert (refusal["id"], refusal["ok"], refusal["code"]) == (long["id"], False, "invalid_request")
    assert (extended["id"], extended["ok"]) == (short["id"], True)


def test_list_is_in_order_of_name(api: TopologyCaller) -> None:
    names = ["b", "B", "a", "10", "9", "a.b", "z", "a:b", "a-b"]
    queues = {name: api.put_queue(name) for name in names}
    api.enqueue(queue="undeclared")
    expected = [queues[name] for name in sorted(names)]
    assert list(api.pages("/v1/queues")) == expected
    for limit in (1, 2, 3, 9):
        assert list(api.pages("/v1/queues", limit=limit)) == expected
    assert api.get("/v1/queues", limit=9)["next_cursor"] is None
    assert len(api.get("/v1/queues", limit=8)["items"]) == 8


def test_list_of_a_topics_queues(api: TopologyCaller) -> None:
    api.put_topic("news", "a", "b")
    api.put_queue("c")
    assert [queue["name"] for queue in api.pages("/v1/queues", topic="news", limit=1)] == ["a", "b"]
    assert api.get("/v1/queues", topic="none") == {"items": [], "next_cursor": None}


def test_queues_that_stay_put_are_seen_once_while_others_come_and_go(api: TopologyCaller) -> None:
    for name in ("b", "d", "f"):
        api.put_queue(name)
    pages = api.pages("/v1/queues", limit=1)
    assert next(pages)["name"] == "b"
    api.put_queue("a")
    api.delete("/v1/queues/b")
    api.put_queue("e")
    assert [queue["name"] for queue in pages] == ["d", "e", "f"]


def test_delete_takes_what_waits(api: TopologyCaller) -> None:
    api.put_queue("work")
    done = api.lease()
    api.settle("ack", done)
    letter = api.die()
    leased = api.lease()
    ready, scheduled = api.enqueue_many({"dedupe_key": "k"}, {"delay_seconds": 3600})
    assert api.delete("/v1/queues/work") == {"name": "work", "deleted": True}
    assert refused(api.client.get("/v1/queues/work")) == NO_QUEUE
    assert refused(api.client.delete("/v1/queues/work")) == NO_QUEUE
    for task in (ready, scheduled):
        assert refused(api.client.get(f"/v1/tasks/{task['id']}")) == (404, "task_not_found")
    assert api.reserve(limit=10) == []
    assert not [task for task in api.tasks() if task["id"] != leased["id"]]
    # The key is free, leased ones can be settled, and what has finished stays.
    assert api.enqueue(dedupe_key="k")["existed"] is False
    assert api.settle("ack", leased)["status"] == "done"
    assert api.task(done["id"])["status"] == "done"
    assert ids(api.dead_letters()) == [letter["id"]]


def test_a_queue_of_the_same_name_starts_empty(api: TopologyCaller) -> None:
    api.put_queue("work", paused=True, max_attempts=9)
    api.enqueue_many(*[{}] * 5)
    api.delete("/v1/queues/work")
    assert settings_of(api.put("/v1/queues/work", {}, 201)) == DEFAULTS
    assert api.reserve(limit=10) == []
    assert api.stats("work") == EMPTY


def test_purge_takes_what_waits(api: TopologyCaller) -> None:
    leased = api.lease()
    other = api.enqueue(queue="other")
    ready, scheduled = api.enqueue_many({"dedupe_key": "k", "id": "mine"}, {"delay_seconds": 3600})
    assert api.post("/v1/queues/work/purge") == {"purged": 2}
    assert api.post("/v1/queues/work/purge") == {"purged": 0}
    for task in (ready, scheduled):
        assert refused(api.client.get(f"/v1/tasks/{task['id']}")) == (404, "task_not_found")
    assert sorted(ids(api.tasks())) == sorted([leased["id"], other["id"]])
    assert api.enqueue(dedupe_key="k", id="mine")["existed"] is False
    assert api.settle("release", leased)["status"] == "ready"


def test_purge_of_more_than_a_batch(api: TopologyCaller) -> None:
    for _ in range(3):
        api.enqueue_many(*[{}] * 800)
    assert api.post("/v1/queues/work/purge") == {"purged": 2400}
    assert api.stats("work") == EMPTY


def test_cleanup_deletes_the_history_and_nothing_else(api: TopologyCaller) -> None:
    done, other = api.lease(), api.lease(queue="other")
    for task in (done, other):
        api.settle("ack", task)
    cancelled = api.enqueue()
    api.client.delete(f"/v1/tasks/{cancelled['id']}")
    letter, waiting = api.die(), api.enqueue()
    assert api.post("/v1/queues/work/cleanup", {"older_than_seconds": 3600}) == {"deleted": 0}
    assert api.post("/v1/queues/work/cleanup") == {"deleted": 2}
    for task in (done, cancelled):
        assert refused(api.client.get(f"/v1/tasks/{task['id']}")) == (404, "task_not_found")
    assert api.task(other["id"])["status"] == "done"
    assert (ids(api.tasks()), ids(api.dead_letters())) == ([waiting["id"]], [letter["id"]])
    stats = api.stats("work")
    assert (stats["done"], stats["cancelled"], stats["dead"], stats["ready"]) == (0, 0, 1, 1)


def test_cleanup_by_age(api: TopologyCaller) -> None:
    old = api.lease()
    api.settle("ack", old)
    time.sleep(1.2)
    new = api.lease()
    api.settle("ack", new)
    assert api.post("/v1/queues/work/cleanup", {"older_than_seconds": 1.0}) == {"deleted": 1}
    assert api.task(new["id"])["status"] == "done"


def test_stats_count_every_state(api: TopologyCaller) -> None:
    assert api.stats("work") == EMPTY
    api.settle("ack", api.lease())
    api.die()
    cancelled = api.enqueue()
    api.client.delete(f"/v1/tasks/{cancelled['id']}")
    api.enqueue(ttl_seconds=0.001)
    api.lease()
    api.enqueue(delay_seconds=3600)
    api.enqueue_many({"priority": 5}, {"priority": 5}, {"priority": -1}, {})
    api.enqueue(queue="other")
    time.sleep(0.05)
    stats = api.stats("work")
    assert {name: stats[name] for name in ZEROS} == {**dict.fromkeys(ZEROS, 1), "ready": 4}
    assert stats["ready_by_priority"] == {"20": 1, "5": 2, "-1": 1}
    assert 0 < stats["oldest_ready_seconds"] < 60
    assert stats["exact"] is True
    assert stats["next_available_at"] is not None


def test_stats_tell_when_the_next_task_is_due(api: TopologyCaller) -> None:
    api.enqueue(delay_seconds=3600)
    first = api.enqueue(delay_seconds=600)
    assert api.stats("work")["next_available_at"] == first["available_at"]


def test_stats_see_what_was_changed_the_moment_before(api: TopologyCaller) -> None:
    for count in range(1, 6):
        api.enqueue()
        assert api.stats("work")["ready"] == count
    for count in range(1, 6):
        [task] = api.reserve()
        assert (api.stats("work")["ready"], api.stats("work")["leased"]) == (5 - count, 1)
        api.settle("ack", task)
        assert (api.stats("work")["leased"], api.stats("work")["done"]) == (0, count)


def test_tenants_keep_apart(api: TopologyCaller, server: Service) -> None:
    api.put_queue("work", paused=True)
    api.enqueue()
    with connect(server, new_tenant()) as client:
        other = TopologyCaller(client)
        assert refused(client.get("/v1/queues/work")) == NO_QUEUE
        assert other.get("/v1/queues")["items"] == []
        assert other.stats("work") == EMPTY
        assert other.post("/v1/queues/work/purge") == {"purged": 0}
        task = other.enqueue()
        assert ids(other.reserve()) == [task["id"]]
    assert len(api.tasks()) == 1


def test_names_are_case_sensitive(api: TopologyCaller) -> None:
    api.put_queue("Work", max_attempts=1)
    api.put_queue("work", max_attempts=2)
    assert [api.get(f"/v1/queues/{name}")["max_attempts"] for name in ("Work", "work")] == [1, 2]
    api.delete("/v1/queues/Work")
    assert [queue["name"] for queue in api.pages("/v1/queues")] == ["work"]


def test_the_longest_name(api: TopologyCaller) -> None:
    name = "n" * 255
    assert api.put(f"/v1/queues/{name}", {}, 201)["name"] == name
    assert [queue["name"] for queue in api.pages("/v1/queues", limit=1)] == [name]


class TestExclusive:
    def test_put(self, api: TopologyCaller) -> None:
        queue = api.put("/v1/queues/mine", {"exclusive": True, "keep_alive_seconds": 100}, 201)
        lives = instant(queue["keep_alive_until"]) - instant(queue["created_at"])
        assert lives == timedelta(seconds=100)

    def test_a_second_put_while_alive(self, api: TopologyCaller) -> None:
        queue = api.put("/v1/queues/mine", {"exclusive": True}, 201)
        for body in ({"exclusive": True}, {"exclusive": False}, {}):
            assert refused(api.client.put("/v1/queues/mine", json=body)) == (409, "queue_exclusive")
        assert api.get("/v1/queues/mine") == queue

    def test_keep_alive(self, api: TopologyCaller) -> None:
        queue = api.put_queue("mine", exclusive=True, keep_alive_seconds=5)
        ends_at = api.post("/v1/queues/mine/keep-alive", {"seconds": 500})["keep_alive_until"]
        assert instant(ends_at) - instant(queue["created_at"]) >= timedelta(seconds=500)
        assert api.get("/v1/queues/mine")["keep_alive_until"] == ends_at
        # It may also end sooner.
        sooner = api.post("/v1/queues/mine/keep-alive", {"seconds": 50})["keep_alive_until"]
        assert instant(sooner) < instant(ends_at)

    def test_keep_alive_of_an_ordinary_queue(self, api: TopologyCaller) -> None:
        api.put_queue("work")
        response = api.client.post("/v1/queues/work/keep-alive", json={"seconds": 5})
        assert refused(response) == (409, "queue_not_exclusive")
        assert api.get("/v1/queues/work")["keep_alive_until"] is None

    def test_it_is_gone_when_its_time_is_over(self, api: TopologyCaller) -> None:
        api.put_queue("mine", exclusive=True, keep_alive_seconds=0.5, max_attempts=9)
        leased = api.lease(queue="mine")
        waiting = api.enqueue(queue="mine", dedupe_key="k")
        time.sleep(0.6)
        assert refused(api.client.get("/v1/queues/mine")) == NO_QUEUE
        assert refused(api.client.post("/v1/queues/mine/keep-alive", json={"seconds": 5})) == NO_QUEUE
        assert api.get("/v1/queues")["items"] == []
        assert refused(api.client.get(f"/v1/tasks/{waiting['id']}")) == (404, "task_not_found")
        assert api.reserve(queues=["mine"]) == []
        assert api.stats("mine")["ready"] == 0
        assert api.settle("ack", leased)["status"] == "done"
        assert settings_of(api.put("/v1/queues/mine", {}, 201)) == DEFAULTS
        assert api.reserve(queues=["mine"]) == []
        assert api.enqueue(queue="mine", dedupe_key="k")["existed"] is False

    def test_keep_alive_keeps_it_alive(self, api: TopologyCaller) -> None:
        api.put_queue("mine", exclusive=True, keep_alive_seconds=1)
        task = api.enqueue(queue="mine")
        for _ in range(5):
            time.sleep(0.4)
            api.post("/v1/queues/mine/keep-alive", {"seconds": 2})
        assert ids(api.reserve(queues=["mine"])) == [task["id"]]

    def test_delete(self, api: TopologyCaller) -> None:
        api.put_queue("mine", exclusive=True)
        api.enqueue(queue="mine")
        api.delete("/v1/queues/mine")
        assert api.put("/v1/queues/mine", {"exclusive": True}, 201)["exclusive"] is True
        assert api.reserve(queues=["mine"]) == []


def at_once(api: TopologyCaller, path: str, body: Json, times: int = 12) -> list[Any]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(lambda _: api.client.put(path, json=body), range(times)))


def test_of_many_puts_at_once_one_is_new(api: TopologyCaller) -> None:
    for number in range(5):
        statuses = [response.status_code for response in at_once(api, f"/v1/queues/q{number}", {})]
        assert sorted(statuses) == [200] * 11 + [201]


def test_of_many_exclusive_puts_at_once_one_wins(api: TopologyCaller) -> None:
    for number in range(5):
        responses = at_once(api, f"/v1/queues/q{number}", {"exclusive": True})
        assert sorted(response.status_code for response in responses) == [201] + [409] * 11
