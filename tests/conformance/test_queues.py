"""Queues: declared, looked at, changed; and those that nobody declared."""

import asyncio
from dataclasses import replace

import pytest

from app.domain.backoff import Backoff
from app.domain.errors import QueueNotFound, TopicNotFound
from app.domain.queue import DEFAULT_QUEUE_SETTINGS, QueueSettings
from tests.conformance.steps import QUEUE, T0, Store, at, settled
from tests.conformance.topology_steps import Settings, Topology

ALL_SETTINGS: Settings = {
    "topic": "news",
    "exclusive": True,
    "keep_alive_seconds": 12.5,
    "max_attempts": 0,
    "lease_seconds": 1.25,
    "max_lease_seconds": 100.5,
    "backoff": Backoff(base_seconds=0.5, factor=1.5, max_seconds=7.75, jitter=0.0),
    "rate_per_second": 0.125,
    "concurrency_limit": 7,
    "paused": True,
    "history_days": 0.5,
    "dlq_days": 2.5,
}
ORDINARY: Settings = {**ALL_SETTINGS, "exclusive": False}


class TestDeclare:
    async def test_new_and_changed(self, topology: Topology) -> None:
        assert await topology.put_is_new()
        assert not await topology.put_is_new(max_attempts=3)
        assert (await topology.get()).settings.max_attempts == 3

    async def test_defaults(self, topology: Topology) -> None:
        queue = await topology.put()
        assert queue.settings == DEFAULT_QUEUE_SETTINGS == QueueSettings()
        assert (queue.name, queue.declared, queue.keep_alive_until) == (QUEUE, True, None)
        assert (queue.created_at, queue.updated_at) == (T0, T0)

    async def test_all_settings_come_back(self, topology: Topology) -> None:
        await topology.put_topic("news")
        queue = await topology.put(**ALL_SETTINGS)
        assert queue.settings == QueueSettings(**ALL_SETTINGS)
        assert (await topology.get()).settings == QueueSettings(**ALL_SETTINGS)
        assert (await topology.list()).items == [await topology.get()]

    @pytest.mark.parametrize(
        "settings",
        [
            Settings(history_days=None, dlq_days=None),
            Settings(history_days=0, dlq_days=0),
            Settings(rate_per_second=1_000_000.0, concurrency_limit=2**31 - 1, max_attempts=2**31 - 1),
            Settings(rate_per_second=0.000001, lease_seconds=0.001, max_lease_seconds=0.001),
        ],
    )
    async def test_extremes_come_back(self, topology: Topology, settings: Settings) -> None:
        await topology.put(**settings)
        assert (await topology.get()).settings == QueueSettings(**settings)

    async def test_put_sets_what_is_not_given_to_its_default(self, topology: Topology) -> None:
        await topology.put_topic("news")
        await topology.put(**ORDINARY)
        queue = await topology.put(now=at(5), max_attempts=3)
        assert queue.settings == QueueSettings(max_attempts=3)
        assert (queue.created_at, queue.updated_at) == (T0, at(5))

    @pytest.mark.parametrize(
        "change",
        [
            Settings(topic="news"),
            Settings(exclusive=True),
            Settings(keep_alive_seconds=12.5),
            Settings(max_attempts=0),
            Settings(lease_seconds=1.25),
            Settings(max_lease_seconds=100.5),
            Settings(backoff=ALL_SETTINGS["backoff"]),
            Settings(rate_per_second=0.125),
            Settings(concurrency_limit=7),
            Settings(paused=True),
            Settings(history_days=None),
            Settings(dlq_days=2.5),
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_patch_changes_only_what_is_given(self, topology: Topology, change: Settings) -> None:
        await topology.put_topic("news")
        await topology.put()
        queue = await topology.patch(**change)
        assert queue.settings == replace(DEFAULT_QUEUE_SETTINGS, **change)
        assert (await topology.get()).settings == queue.settings

    async def test_unknown_topic_is_refused(self, topology: Topology) -> None:
        with pytest.raises(TopicNotFound):
            await topology.put(topic="news")
        with pytest.raises(QueueNotFound):
            await topology.get()
        await topology.put()
        with pytest.raises(TopicNotFound):
            await topology.patch(topic="news", max_attempts=1)
        assert (await topology.get()).settings == DEFAULT_QUEUE_SETTINGS

    async def test_topic_of_another_tenant_is_unknown(self, topology: Topology, other_topology: Topology) -> None:
        await other_topology.put_topic("news")
        with pytest.raises(TopicNotFound):
            await topology.put(topic="news")

    async def test_declaring_a_queue_keeps_what_waits_in_it(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first", dedupe_key="key")
        await store.enqueue("later", delay_seconds=60)
        leased = await store.lease("leased", queue=QUEUE, priority=99)
        assert await topology.put_is_new()
        assert await topology.counts() == {"ready": 1, "scheduled": 1, "leased": 1}
        assert (await store.enqueue("second", dedupe_key="key")).id == "first"
        settled(await store.release(leased))
        assert await store.reserve_ids() == ["leased", "first"]

    async def test_names_that_differ_in_case_are_different_queues(self, store: Store, topology: Topology) -> None:
        await topology.put("work", max_attempts=1)
        assert await topology.put_is_new("Work", max_attempts=2)
        assert await topology.put_is_new("WORK")
        await store.enqueue("first", queue="Work")
        assert await topology.counts("work") == {}
        assert (await topology.get("work")).settings.max_attempts == 1
        await topology.delete("work")
        assert await store.reserve_ids(queues=["Work"]) == ["first"]

    @pytest.mark.parametrize("name", ["a", "..a", "A.b:c_d-e", "x" * 255, "0"])
    async def test_names(self, topology: Topology, name: str) -> None:
        await topology.put(name)
        assert (await topology.get(name)).name == name

    async def test_tenants_are_apart(
        self, store: Store, topology: Topology, other_store: Store, other_topology: Topology
    ) -> None:
        await topology.put(max_attempts=1)
        with pytest.raises(QueueNotFound):
            await other_topology.get()
        assert await other_topology.put_is_new(paused=True)
        assert (await topology.get()).settings == QueueSettings(max_attempts=1)
        await store.enqueue("first")
        await other_store.enqueue("first")
        await other_topology.delete()
        assert await store.reserve_ids() == ["first"]


class TestList:
    async def test_in_order_of_name_by_pages(self, topology: Topology) -> None:
        for name in ("b", "a", "C", "c", "B"):
            await topology.put(name)
        seen: list[str] = []
        page = await topology.list(limit=2)
        seen += [queue.name for queue in page.items]
        while page.next_key is not None:
            page = await topology.list(limit=2, after=page.next_key)
            assert len(page.items) <= 2
            seen += [queue.name for queue in page.items]
        assert seen == ["B", "C", "a", "b", "c"]

    async def test_last_page_that_is_full_has_no_next(self, topology: Topology) -> None:
        for name in ("a", "b"):
            await topology.put(name)
        assert (await topology.list(limit=2)).next_key is None

    async def test_by_topic(self, topology: Topology) -> None:
        await topology.subscribe("news", "a", "c")
        await topology.subscribe("News", "d")
        await topology.put("b")
        assert await topology.names("news") == ["a", "c"]
        assert await topology.names("unknown") == []
        assert await topology.names() == ["a", "b", "c", "d"]

    async def test_undeclared_queues_are_not_listed(self, store: Store, topology: Topology) -> None:
        await store.enqueue(queue="undeclared")
        await topology.put("declared")
        assert await topology.names() == ["declared"]


class TestUndeclared:
    async def test_it_has_no_settings_to_look_at(self, store: Store, topology: Topology) -> None:
        await store.enqueue("first")
        with pytest.raises(QueueNotFound):
            await topology.get()
        with pytest.raises(QueueNotFound):
            await topology.patch(max_attempts=1)
        with pytest.raises(QueueNotFound):
            await topology.delete()
        with pytest.raises(QueueNotFound):
            await topology.keep_alive(60)
        assert await store.reserve_ids() == ["first"]

    async def test_stats_purge_and_cleanup_work(self, store: Store, topology: Topology) -> None:
        await store.finish("done")
        await store.enqueue("first")
        assert await topology.counts() == {"done": 1, "ready": 1}
        assert await topology.purge() == 1
        assert await topology.cleanup() == 1
        assert await topology.counts() == {}

    async def test_so_they_do_for_one_that_never_was(self, topology: Topology) -> None:
        assert await topology.counts("never") == {}
        assert await topology.purge("never") == 0
        assert await topology.cleanup(name="never") == 0
        assert await topology.names() == []

    @pytest.mark.parametrize("paused", [True, False])
    async def test_pause_and_resume_declare_it(self, store: Store, topology: Topology, paused: bool) -> None:
        await store.enqueue("first")
        queue = await (topology.pause() if paused else topology.resume())
        assert queue.settings == QueueSettings(paused=paused)
        assert await topology.get() == queue
        assert await topology.counts() == {"ready": 1}

    async def test_pause_declares_one_that_never_was(self, topology: Topology) -> None:
        await topology.pause("never")
        assert await topology.names() == ["never"]
        assert not await topology.put_is_new("never")


class TestAtTheSameMoment:
    async def test_one_of_those_who_declare_it_made_it(self, topology: Topology) -> None:
        assert sorted(await asyncio.gather(*(topology.put_is_new() for _ in range(6)))) == [False] * 5 + [True]

    async def test_those_who_enqueue_first_share_one_queue(self, store: Store, topology: Topology) -> None:
        await asyncio.gather(*(store.enqueue() for _ in range(6)), topology.put(max_attempts=3))
        assert (await topology.get()).settings.max_attempts == 3
        assert len(await store.reserve_ids()) == 6

    async def test_changes_of_different_settings_are_all_kept(self, topology: Topology) -> None:
        await topology.put()
        await asyncio.gather(
            topology.patch(max_attempts=3),
            topology.patch(concurrency_limit=4),
            topology.patch(rate_per_second=5),
            topology.pause(),
        )
        settings = (await topology.get()).settings
        kept = (settings.max_attempts, settings.concurrency_limit, settings.rate_per_second, settings.paused)
        assert kept == (3, 4, 5, True)

    async def test_key_is_held_once_by_those_who_enqueue_first(self, store: Store) -> None:
        outcomes = await asyncio.gather(*(store.enqueue(dedupe_key="key") for _ in range(6)))
        assert len({outcome.id for outcome in outcomes}) == 1
        assert len(await store.reserve_ids()) == 1

    async def test_what_is_enqueued_while_it_is_deleted_is_gone_or_waits(
        self, store: Store, topology: Topology
    ) -> None:
        await topology.put()
        outcomes = await asyncio.gather(*(store.enqueue() for _ in range(4)), topology.delete())
        reserved = set(await store.reserve_ids())
        assert reserved <= {outcome.id for outcome in outcomes[:4] if outcome is not None}
        assert await topology.names() == []
