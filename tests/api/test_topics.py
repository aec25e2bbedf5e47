"""Topics: declare, look, delete, publish, clean up."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.caller import Json, ids, instant, new_tenant
from tests.api.checking import refused
from tests.service import Service
from tests.waiting.topology import TopologyCaller, connect

NO_TOPIC = (404, "topic_not_found")
NO_TASK = (404, "task_not_found")


@pytest.fixture
def api(server: Service) -> Iterator[TopologyCaller]:
    with connect(server, new_tenant()) as client:
        yield TopologyCaller(client)


def delivered(published: Json) -> dict[str, str]:
    """The tasks' ids by queue."""
    return {delivery["queue"]: delivery["id"] for delivery in published["deliveries"]}


def test_put_get_and_delete(api: TopologyCaller) -> None:
    response = api.client.put("/v1/topics/news", json={})
    assert (response.status_code, response.headers["Location"]) == (201, "/v1/topics/news")
    topic = response.json()
    assert topic["name"] == "news"
    assert api.put("/v1/topics/news", status=200) == topic
    assert api.get("/v1/topics/news") == topic
    assert api.delete("/v1/topics/news") == {"name": "news", "deleted": True}
    assert refused(api.client.get("/v1/topics/news")) == NO_TOPIC
    assert refused(api.client.delete("/v1/topics/news")) == NO_TOPIC


UNKNOWN = {
    "get": ("GET", "", None),
    "delete": ("DELETE", "", None),
    "publish": ("POST", "/publish", {"payload": 1}),
    "cleanup": ("POST", "/cleanup", {}),
}


@pytest.mark.parametrize(("method", "path", "body"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_topic_that_is_not_there(api: TopologyCaller, method: str, path: str, body: Json | None) -> None:
    # A queue of that name is no topic.
    api.put_queue("news")
    assert refused(api.client.request(method, f"/v1/topics/news{path}", json=body)) == NO_TOPIC
    assert api.tasks() == []


def test_list_is_in_order_of_name(api: TopologyCaller) -> None:
    names = ["b", "B", "a", "10", "9", "a.b"]
    topics = {name: api.put(f"/v1/topics/{name}") for name in names}
    expected = [topics[name] for name in sorted(names)]
    assert api.get("/v1/topics") == {"items": expected, "next_cursor": None}
    for limit in (1, 4, 6):
        assert list(api.pages("/v1/topics", limit=limit)) == expected


def test_publish_makes_a_task_for_every_subscriber(api: TopologyCaller) -> None:
    api.put_topic("news", "b", "a")
    api.put_queue("c")
    message = {"payload": {"n": 1.50}, "type": "t", "meta": {"k": 1}, "priority": 7, "timeout_seconds": 3}
    response = api.client.post("/v1/topics/news/publish", json=message)
    assert response.status_code == 201
    published = response.json()
    assert sorted(delivered(published)) == ["a", "b"]
    assert [delivery["existed"] for delivery in published["deliveries"]] == [False, False]
    for queue, task_id in delivered(published).items():
        task = api.task(task_id)
        assert {name: task[name] for name in message} == message
        assert (task["queue"], task["topic"], task["publish_id"]) == (queue, "news", published["publish_id"])
        assert (task["status"], task["attempts"]) == ("ready", 0)
    assert len(set(delivered(published).values())) == 2
    assert len(api.tasks()) == 2


def test_publish_of_bytes(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    published = api.post("/v1/topics/news/publish", {"payload_base64": "AAEC/w==", "content_type": "image/png"})
    task = api.task(delivered(published)["a"])
    assert (task["payload_base64"], task["content_type"]) == ("AAEC/w==", "image/png")


def test_each_publish_has_an_id_of_its_own(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    assert api.publish("news")["publish_id"] != api.publish("news")["publish_id"]


def test_publish_to_nobody(api: TopologyCaller) -> None:
    api.put_topic("news")
    assert api.publish("news")["deliveries"] == []
    assert api.tasks() == []


def test_a_later_subscriber_gets_none_of_the_earlier_ones(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    api.publish("news")
    api.put_queue("late", topic="news")
    api.enqueue(queue="ordinary")
    assert api.reserve(queues=["late"]) == []
    assert sorted(delivered(api.publish("news"))) == ["a", "late"]


def test_an_ordinary_queue_can_subscribe_and_leave(api: TopologyCaller) -> None:
    api.put_topic("news")
    api.put_queue("work")
    own = api.enqueue()
    assert api.patch("/v1/queues/work", {"topic": "news"})["topic"] == "news"
    published = delivered(api.publish("news"))["work"]
    assert api.put("/v1/queues/work", {}, 200)["topic"] is None
    assert api.publish("news")["deliveries"] == []
    assert ids(api.reserve(limit=10)) == [own["id"], published]


def test_a_queue_can_change_its_topic(api: TopologyCaller) -> None:
    api.put_topic("old", "work")
    api.put_topic("new")
    api.patch("/v1/queues/work", {"topic": "new"})
    assert api.publish("old")["deliveries"] == []
    assert list(delivered(api.publish("new"))) == ["work"]


def test_each_subscriber_gets_its_own_queues_settings(api: TopologyCaller) -> None:
    api.put("/v1/topics/news")
    api.put_queue("a", topic="news", max_attempts=2)
    api.put_queue("b", topic="news", paused=True)
    published = delivered(api.publish("news"))
    assert (api.task(published["a"])["max_attempts"], api.task(published["b"])["max_attempts"]) == (2, 5)
    assert ids(api.reserve(queues=["a", "b"], limit=10)) == [published["a"]]


def test_publish_later(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    task = api.task(delivered(api.publish("news", delay_seconds=600, ttl_seconds=900))["a"])
    assert task["status"] == "scheduled"
    assert instant(task["expires_at"]) > instant(task["available_at"])


def test_dedupe_is_by_queue(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    first = api.publish("news", dedupe_key="k")
    api.put_queue("b", topic="news")
    second = api.publish("news", dedupe_key="k")
    existed = {delivery["queue"]: delivery["existed"] for delivery in second["deliveries"]}
    assert existed == {"a": True, "b": False}
    assert delivered(second)["a"] == delivered(first)["a"]
    assert len(api.tasks()) == 2
    assert api.task(delivered(first)["a"])["publish_id"] == first["publish_id"]


def test_tasks_by_topic(api: TopologyCaller) -> None:
    api.put_topic("news", "a", "b")
    published = delivered(api.publish("news"))
    api.enqueue(queue="a")
    assert sorted(ids(api.tasks(topic="news"))) == sorted(published.values())
    assert ids(api.tasks(topic="news", queue="b")) == [published["b"]]
    assert len(api.tasks(topic="a")) == 1


def test_a_published_task_that_dies_is_found_by_its_topic_and_comes_back(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    published = api.publish("news")
    [task] = api.reserve(queues=["a"])
    api.settle("fail", task, reason="broken")
    [letter] = api.dead_letters(topic="news")
    assert (letter["topic"], letter["publish_id"]) == ("news", published["publish_id"])
    assert api.post("/v1/dlq/requeue", {"topic": "news"})["requeued"] == 1
    again = api.task(task["id"])
    assert (again["topic"], again["publish_id"], again["queue"]) == ("news", published["publish_id"], "a")


def test_delete_takes_the_queues_and_what_waits_in_them(api: TopologyCaller) -> None:
    api.put_topic("news", "a", "b")
    api.put_queue("c")
    first = delivered(api.publish("news"))
    [leased] = api.reserve(queues=["a"])
    second = delivered(api.publish("news"))
    other = api.enqueue(queue="c")
    api.delete("/v1/topics/news")
    for queue in ("a", "b"):
        assert refused(api.client.get(f"/v1/queues/{queue}")) == (404, "queue_not_found")
    for task_id in (first["b"], second["a"], second["b"]):
        assert refused(api.client.get(f"/v1/tasks/{task_id}")) == NO_TASK
    assert ids(api.reserve(queues=["a", "b", "c"], limit=10)) == [other["id"]]
    assert api.settle("ack", leased)["status"] == "done"
    assert api.task(leased["id"])["topic"] == "news"
    assert [queue["name"] for queue in api.pages("/v1/queues")] == ["c"]
    # A new one of the same name has no subscribers.
    api.put("/v1/topics/news", status=201)
    assert api.publish("news")["deliveries"] == []


def test_an_exclusive_subscriber(api: TopologyCaller) -> None:
    api.put_topic("news", "a")
    api.put_queue("mine", topic="news", exclusive=True)
    assert sorted(delivered(api.publish("news"))) == ["a", "mine"]
    api.post("/v1/queues/mine/keep-alive", {"seconds": 0.001})
    assert sorted(delivered(api.publish("news"))) == ["a"]


def test_cleanup_of_all_its_queues(api: TopologyCaller) -> None:
    api.put_topic("news", "a", "b")
    for queue in ("a", "b", "c"):
        api.settle("ack", api.lease(queue=queue))
    assert api.post("/v1/topics/news/cleanup", {"older_than_seconds": 3600}) == {"deleted": 0}
    assert api.post("/v1/topics/news/cleanup") == {"deleted": 2}
    assert [api.stats(queue)["done"] for queue in ("a", "b", "c")] == [0, 0, 1]


def test_tenants_keep_apart(api: TopologyCaller, server: Service) -> None:
    api.put_topic("news", "a")
    with connect(server, new_tenant()) as client:
        other = TopologyCaller(client)
        assert refused(client.get("/v1/topics/news")) == NO_TOPIC
        assert refused(client.post("/v1/topics/news/publish", json={"payload": 1})) == NO_TOPIC
        assert other.get("/v1/topics")["items"] == []
        other.put_topic("news", "b")
        assert list(delivered(other.publish("news"))) == ["b"]
    assert api.tasks() == []


def test_of_many_puts_at_once_one_is_new(api: TopologyCaller) -> None:
    for number in range(5):
        with ThreadPoolExecutor(12) as pool:
            responses = list(pool.map(lambda _, n=number: api.client.put(f"/v1/topics/t{n}"), range(12)))
        assert sorted(response.status_code for response in responses) == [200] * 11 + [201]


def test_publish_while_queues_come_and_go(api: TopologyCaller) -> None:
    """Whatever was told as delivered is there, unless its queue went; and nothing fails."""
    api.put_topic("news", "stays")

    def come_and_go(number: int) -> None:
        for _ in range(5):
            api.put_queue(f"q{number}", topic="news")
            api.delete(f"/v1/queues/q{number}")

    def publish(_: int) -> list[str]:
        return [delivered(api.publish("news"))["stays"] for _ in range(8)]

    with ThreadPoolExecutor(8) as pool:
        goings = [pool.submit(come_and_go, number) for number in range(3)]
        published = [task_id for batch in pool.map(publish, range(4)) for task_id in batch]
        for going in goings:
            going.result()
    assert sorted(ids(api.tasks(queue="stays"))) == sorted(published)
    assert {task["queue"] for task in api.tasks()} == {"stays"}
