"""Topics: one message is one task in every queue that is subscribed at that moment."""

import asyncio

import pytest

from app.domain.commands import TaskFilter
from app.domain.errors import QueueNotFound, TaskNotFound, TopicNotFound
from app.domain.task import Status
from tests.conformance.steps import T0, Store, at, ids, json_payload, settled
from tests.conformance.topology_steps import Topology


def queues_of(published: object) -> list[str]:
    return [delivery.queue for delivery in getattr(published, "deliveries", ())]


class TestTopics:
    async def test_new_and_there_already(self, topology: Topology) -> None:
        topic, is_new = await topology.put_topic("news")
        assert (topic.name, topic.created_at, is_new) == ("news", T0, True)
        assert await topology.put_topic("news", at(5)) == (topic, False)
        assert await topology.get_topic("news", at(6)) == topic

    async def test_putting_it_again_keeps_its_subscribers(self, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.put_topic("news", at(1))
        assert queues_of(await topology.publish("news", at(2))) == ["a"]

    async def test_unknown(self, topology: Topology) -> None:
        with pytest.raises(TopicNotFound):
            await topology.get_topic("news")
        with pytest.raises(TopicNotFound):
            await topology.delete_topic("news")
        with pytest.raises(TopicNotFound):
            await topology.publish("news")
        with pytest.raises(TopicNotFound):
            await topology.cleanup_topic("news")

    async def test_listed_in_order_of_name_by_pages(self, topology: Topology) -> None:
        for name in ("b", "a", "C", "c", "B"):
            await topology.put_topic(name)
        page = await topology.list_topics(limit=2)
        seen = [topic.name for topic in page.items]
        while page.next_key is not None:
            page = await topology.list_topics(limit=2, after=page.next_key)
            seen += [topic.name for topic in page.items]
        assert seen == ["B", "C", "a", "b", "c"]

    async def test_names_that_differ_in_case_are_different_topics(self, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.subscribe("News", "b")
        assert queues_of(await topology.publish("news")) == ["a"]
        assert queues_of(await topology.publish("News")) == ["b"]
        await topology.delete_topic("news")
        assert (await topology.get_topic("News")).name == "News"

    async def test_tenants_are_apart(self, topology: Topology, other_topology: Topology) -> None:
        await topology.subscribe("news", "a")
        with pytest.raises(TopicNotFound):
            await other_topology.publish("news")
        await other_topology.subscribe("news", "b")
        assert queues_of(await topology.publish("news")) == ["a"]
        await other_topology.delete_topic("news")
        assert queues_of(await topology.publish("news")) == ["a"]


class TestPublish:
    async def test_one_task_in_every_queue(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "b", "a")
        await topology.put("c")
        published = await topology.publish("news", publish_id="m", payload=json_payload('{"n":1}'))
        assert published.publish_id == "m"
        assert sorted(queues_of(published)) == ["a", "b"]
        assert not any(delivery.existed for delivery in published.deliveries)
        assert len({delivery.id for delivery in published.deliveries}) == 2
        for delivery in published.deliveries:
            task = await store.get(delivery.id)
            assert (task.queue, task.topic, task.publish_id) == (delivery.queue, "news", "m")
            assert task.payload.data == b'{"n":1}'
        assert await topology.counts("c") == {}

    async def test_no_subscriber_no_delivery(self, store: Store, topology: Topology) -> None:
        await topology.put_topic("news")
        assert list((await topology.publish("news")).deliveries) == []
        assert ids((await store.list_live()).items) == []

    async def test_topic_is_no_queue(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.publish("news")
        assert await store.reserve_ids(queues=["news"]) == []

    async def test_queue_may_have_the_name_of_its_topic(self, topology: Topology) -> None:
        await topology.subscribe("news", "news", "a")
        assert sorted(queues_of(await topology.publish("news"))) == ["a", "news"]

    async def test_later_subscribers_get_none_of_the_earlier(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.publish("news")
        await topology.put("b", at(1), topic="news")
        assert await store.reserve_ids(at(1), queues=["b"]) == []
        assert sorted(queues_of(await topology.publish("news", at(2)))) == ["a", "b"]

    async def test_unsubscribed_queue_keeps_what_it_got_and_gets_no_more(
        self, store: Store, topology: Topology
    ) -> None:
        await topology.subscribe("news", "a", "b")
        [first, _] = (await topology.publish("news")).deliveries
        await topology.patch("a", at(1), topic=None)
        assert queues_of(await topology.publish("news", at(2))) == ["b"]
        assert await store.reserve_ids(at(3), queues=["a"]) == [first.id]

    async def test_queue_that_changes_its_topic(self, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.put_topic("sports")
        await topology.patch("a", topic="sports")
        assert queues_of(await topology.publish("news")) == []
        assert queues_of(await topology.publish("sports")) == ["a"]

    async def test_everything_said_of_the_message_is_carried(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        [delivery] = (
            await topology.publish(
                "news",
                type="mail",
                meta='{"k":"v"}',
                priority=77,
                max_attempts=3,
                delay_seconds=10,
                ttl_seconds=100,
                timeout_seconds=9,
                dedupe_key="key",
            )
        ).deliveries
        task = await store.get(delivery.id)
        assert (task.type, task.meta, task.priority, task.max_attempts) == ("mail", '{"k":"v"}', 77, 3)
        assert (task.available_at, task.expires_at, task.timeout_seconds) == (at(10), at(100), 9)
        assert (task.dedupe_key, task.status, delivery.status) == ("key", Status.SCHEDULED, Status.SCHEDULED)

    async def test_each_queue_says_what_the_message_does_not(self, store: Store, topology: Topology) -> None:
        await topology.put_topic("news")
        await topology.put("a", topic="news", max_attempts=1)
        await topology.put("b", topic="news", max_attempts=9)
        published = await topology.publish("news", max_attempts=None)
        attempts = {each.queue: (await store.get(each.id)).max_attempts for each in published.deliveries}
        assert attempts == {"a": 1, "b": 9}

    async def test_paused_queue_gets_its_task(self, store: Store, topology: Topology) -> None:
        await topology.put_topic("news")
        await topology.put("a", topic="news", paused=True)
        [delivery] = (await topology.publish("news")).deliveries
        assert await store.status(delivery.id) is Status.READY

    async def test_dedupe_is_by_queue(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        [first] = (await topology.publish("news", dedupe_key="key")).deliveries
        await topology.put("b", topic="news")
        again = (await topology.publish("news", publish_id="m2", dedupe_key="key")).deliveries
        found = {delivery.queue: delivery for delivery in again}
        assert (found["a"].id, found["a"].existed) == (first.id, True)
        assert not found["b"].existed
        assert (await store.get(first.id)).publish_id == "message-1"
        assert (await store.get(found["b"].id)).publish_id == "m2"

    async def test_dedupe_window_after_done(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.publish("news", dedupe_key="key", dedupe_seconds=60)
        settled(await store.ack(await store.reserve_one(queues=["a"])))
        [held] = (await topology.publish("news", at(59), dedupe_key="key")).deliveries
        [free] = (await topology.publish("news", at(60), dedupe_key="key")).deliveries
        assert (held.existed, free.existed) == (True, False)

    async def test_listed_and_filtered_by_topic(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a", "b")
        published = await topology.publish("news")
        await store.enqueue("direct", queue="a")
        found = await store.list_live(TaskFilter(topic="news"))
        assert sorted(ids(found.items)) == sorted(delivery.id for delivery in published.deliveries)

    async def test_many_subscribers(self, store: Store, topology: Topology) -> None:
        names = [f"queue-{number:03}" for number in range(120)]
        await topology.subscribe("news", *names)
        published = await topology.publish("news")
        assert sorted(queues_of(published)) == names
        assert len((await store.list_live(limit=200)).items) == 120

    async def test_publish_while_queues_are_deleted_is_whole(self, store: Store, topology: Topology) -> None:
        """Whoever comes first: a queue that is told of has its task, or had it until it was deleted."""
        await topology.subscribe("news", "a", "b", "c")
        published, *_ = await asyncio.gather(
            topology.publish("news"), topology.delete("a"), topology.publish("news"), topology.delete("b")
        )
        assert "c" in queues_of(published)
        assert await topology.names() == ["c"]
        assert await topology.counts("c") == {"ready": 2}
        assert await topology.counts("a") == await topology.counts("b") == {}

    async def test_publish_while_topic_is_deleted(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a", "b")
        outcomes = await asyncio.gather(
            topology.publish("news"), topology.delete_topic("news"), topology.publish("news"), return_exceptions=True
        )
        assert outcomes[1] is None
        unexpected = [each for each in outcomes if isinstance(each, Exception) and not isinstance(each, TopicNotFound)]
        assert unexpected == []
        assert ids((await store.list_live()).items) == []


class TestDelete:
    async def test_its_queues_go_with_what_waits_in_them(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a", "b")
        await topology.put("other")
        await store.enqueue("elsewhere", queue="other")
        published = await topology.publish("news")
        await store.enqueue("direct", queue="a")
        await topology.delete_topic("news")
        with pytest.raises(TopicNotFound):
            await topology.get_topic("news")
        assert await topology.names() == ["other"]
        for name in ("a", "b"):
            with pytest.raises(QueueNotFound):
                await topology.get(name)
        for task_id in [*(delivery.id for delivery in published.deliveries), "direct"]:
            with pytest.raises(TaskNotFound):
                await store.get(task_id)
        assert await store.reserve_ids(queues=["a", "b", "other"]) == ["elsewhere"]

    async def test_leased_tasks_can_be_settled(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.publish("news")
        leased = await store.reserve_one(queues=["a"])
        await topology.delete_topic("news")
        assert settled(await store.ack(leased)).status is Status.DONE

    async def test_what_time_decided_before_stays_decided(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await store.lease("came-back", queue="a")
        await store.enqueue("expired", queue="a", ttl_seconds=10)
        await topology.delete_topic("news", at(40))
        assert await store.status("expired", at(41)) is Status.EXPIRED
        with pytest.raises(TaskNotFound):
            await store.get("came-back", at(41))

    async def test_new_one_has_no_subscribers(self, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await topology.delete_topic("news")
        assert (await topology.put_topic("news", at(1)))[1]
        assert queues_of(await topology.publish("news", at(2))) == []

    async def test_queue_that_left_before_stays(self, topology: Topology) -> None:
        await topology.subscribe("news", "a", "b")
        await topology.patch("a", topic=None)
        await topology.delete_topic("news")
        assert await topology.names() == ["a"]


class TestCleanup:
    async def test_history_of_all_its_queues(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a", "b")
        for queue in ("a", "b", "other"):
            await store.finish(f"done-{queue}", queue=queue)
        assert await topology.cleanup_topic("news", now=at(1)) == 2
        assert await store.status("done-other", at(1)) is Status.DONE
        with pytest.raises(TaskNotFound):
            await store.get("done-a", at(1))

    async def test_only_what_is_older(self, store: Store, topology: Topology) -> None:
        await topology.subscribe("news", "a")
        await store.finish("old", queue="a")
        await store.finish("new", at(50), queue="a")
        assert await topology.cleanup_topic("news", 30, at(60)) == 1
        assert await store.status("new", at(60)) is Status.DONE
