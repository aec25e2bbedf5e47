"""Queues and topics: declare, look, change, delete, publish."""

import asyncio
from dataclasses import replace
from datetime import datetime

from app.domain.commands import Page
from app.domain.errors import InvalidRequest
from app.domain.queue import Queue, QueueSettings
from app.domain.task import NewTask, Status
from app.domain.topology import Explanation, NameKey, Published, QueueStats, Topic
from app.metrics import Metrics
from app.repository.protocol import ChangeSettings, TopologyRepository
from app.service.wakeups import WakeUps

# Counts are exact up to here.
BOUND = 100_000
# A full count is made at most so often that it takes a twentieth of the time.
REST_FACTOR = 20
LEAST_REST_SECONDS = 2.0
# Older than this, the sample of a busy queue would be too far from the truth.
MOST_REST_SECONDS = 30.0


class QueueService:
    def __init__(self, repository: TopologyRepository, metrics: Metrics, wakeups: WakeUps) -> None:
        self._repository = repository
        self._metrics = metrics
        self._wakeups = wakeups
        self._samples: dict[tuple[str, str], tuple[float, QueueStats]] = {}
        self._counting = asyncio.Lock()

    async def put(self, tenant_id: str, name: str, settings: QueueSettings) -> tuple[Queue, bool]:
        _check(settings)
        put = await self._repository.put_queue(tenant_id, name, settings)
        # Whatever held tasks back may do so no longer.
        self._wakeups.announce(tenant_id, {name: 1})
        return put

    async def patch(self, tenant_id: str, name: str, change: ChangeSettings) -> Queue:
        def checked(settings: QueueSettings) -> QueueSettings:
            changed = change(settings)
            _check(changed)
            return changed

        queue = await self._repository.patch_queue(tenant_id, name, checked)
        # Whatever held tasks back may do so no longer.
        self._wakeups.announce(tenant_id, {name: 1})
        return queue

    async def get(self, tenant_id: str, name: str) -> Queue:
        return await self._repository.get_queue(tenant_id, name)

    async def list(self, tenant_id: str, topic: str | None, limit: int, after: NameKey | None) -> Page[Queue, NameKey]:
        return await self._repository.list_queues(tenant_id, topic, limit, after)

    async def delete(self, tenant_id: str, name: str) -> None:
        await self._repository.delete_queue(tenant_id, name)
        self._samples.pop((tenant_id, name), None)

    async def pause(self, tenant_id: str, name: str) -> Queue:
        return await self._repository.set_paused(tenant_id, name, paused=True)

    async def resume(self, tenant_id: str, name: str) -> Queue:
        queue = await self._repository.set_paused(tenant_id, name, paused=False)
        self._wakeups.announce(tenant_id, {name: 1})
        return queue

    async def keep_alive(self, tenant_id: str, name: str, seconds: float) -> datetime:
        return await self._repository.keep_alive(tenant_id, name, seconds)

    async def purge(self, tenant_id: str, name: str) -> int:
        purged = await self._repository.purge_queue(tenant_id, name)
        self._samples.pop((tenant_id, name), None)
        self._metrics.count_operation("purge", name, "ok", purged)
        return purged

    async def cleanup(self, tenant_id: str, name: str, older_than_seconds: float) -> int:
        return await self._repository.cleanup_queue(tenant_id, name, older_than_seconds)

    async def stats(self, tenant_id: str, name: str) -> QueueStats:
        """Exact up to a bound; beyond it, from a full count that was made a short while ago."""
        stats = await self._repository.queue_stats(tenant_id, name, BOUND + 1)
        return stats if stats.exact else _completed(stats, await self._sample(tenant_id, name))

    async def explain(self, tenant_id: str, task_id: str) -> Explanation:
        return await self._repository.explain_task(tenant_id, task_id, BOUND + 1)

    async def _sample(self, tenant_id: str, name: str) -> QueueStats:
        loop = asyncio.get_running_loop()
        # One counts for all who ask meanwhile.
        async with self._counting:
            good_until, sample = self._samples.get((tenant_id, name), (0.0, None))
            if sample is not None and loop.time() < good_until:
                return sample
            started = loop.time()
            stats = await self._repository.queue_stats(tenant_id, name, None)
            rest = min(max(LEAST_REST_SECONDS, REST_FACTOR * (loop.time() - started)), MOST_REST_SECONDS)
            self._samples = {key: kept for key, kept in self._samples.items() if kept[0] > started}
            self._samples[tenant_id, name] = (loop.time() + rest, stats)
            return stats


class TopicService:
    def __init__(self, repository: TopologyRepository, metrics: Metrics, wakeups: WakeUps) -> None:
        self._repository = repository
        self._metrics = metrics
        self._wakeups = wakeups

    async def put(self, tenant_id: str, name: str) -> tuple[Topic, bool]:
        return await self._repository.put_topic(tenant_id, name)

    async def get(self, tenant_id: str, name: str) -> Topic:
        return await self._repository.get_topic(tenant_id, name)

    async def list(self, tenant_id: str, limit: int, after: NameKey | None) -> Page[Topic, NameKey]:
        return await self._repository.list_topics(tenant_id, limit, after)

    async def delete(self, tenant_id: str, name: str) -> None:
        await self._repository.delete_topic(tenant_id, name)

    async def publish(self, tenant_id: str, name: str, message: NewTask) -> Published:
        """One task for every subscribed queue, all or none."""
        published = await self._repository.publish(tenant_id, name, message)
        new = [delivery for delivery in published.deliveries if not delivery.existed]
        for delivery in published.deliveries:
            outcome = "existed" if delivery.existed else "ok"
            self._metrics.count_operation("publish", delivery.queue, outcome)
        self._wakeups.announce(tenant_id, {delivery.queue: 1 for delivery in new})
        return published

    async def cleanup(self, tenant_id: str, name: str, older_than_seconds: float) -> int:
        return await self._repository.cleanup_topic(tenant_id, name, older_than_seconds)


def _completed(stats: QueueStats, sample: QueueStats) -> QueueStats:
    """What could be counted, and the sample for what is too many."""
    counts = {status: count if count <= BOUND else sample.counts[status] for status, count in stats.counts.items()}
    if stats.counts[Status.READY] <= BOUND:
        return replace(stats, counts=counts)
    return replace(
        stats,
        counts=counts,
        ready_by_priority=sample.ready_by_priority,
        oldest_ready_seconds=sample.oldest_ready_seconds,
    )


def _check(settings: QueueSettings) -> None:
    if settings.lease_seconds > settings.max_lease_seconds:
        raise InvalidRequest("lease_seconds is over max_lease_seconds", location=("body", "lease_seconds"))
