"""Limits that hold across all replicas: decided under the locked rows of the limited queues."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.queue import Queue, RateBucket
from app.repository.queue_records import queue_of
from app.repository.session import Session


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many tasks each queue may deliver now; queues that were paused or deleted meanwhile are left out."""

    queues: Sequence[Queue]
    rooms: Mapping[int, int]
    buckets: Mapping[int, RateBucket]

    def held_back_by_rate(self, now: datetime) -> list[int]:
        """The ids of those whose rate allows nothing at the moment."""
        return [queue_id for queue_id, bucket in self.buckets.items() if bucket.allowed(now) <= 0]

    def next_at(self, queue_id: int, now: datetime) -> datetime:
        return self.buckets[queue_id].next_at(now)


async def allow(session: Session, queues: Sequence[Queue], limit: int) -> Allowance:
    """What the limits allow. Without limits nothing is asked of the database; with them their queues stay locked."""
    limited = [queue.id for queue in queues if queue.is_limited]
    if not limited:
        return Allowance(queues, {queue.id: limit for queue in queues}, {})
    locked = {row["id"]: queue_of(row) for row in await session.rows("lock_queues", queue_ids=limited)}
    # Waiting for the lock took time, and what others delivered meanwhile counts.
    await session.look_at_clock_again()
    fresh = [locked.get(queue.id, queue) for queue in queues if queue.id in locked or not queue.is_limited]
    usable = [queue for queue in fresh if queue.is_alive(session.now) and not queue.settings.paused]
    leased = await _count_leased(session, usable)
    buckets = {queue.id: bucket for queue in usable if (bucket := _bucket(queue)) is not None}
    rooms = {queue.id: _room(queue, limit, leased, buckets.get(queue.id), session.now) for queue in usable}
    return Allowance(usable, rooms, buckets)


async def take(session: Session, allowance: Allowance, delivered: Sequence[str]) -> Allowance:
    """Takes what was delivered out of the buckets of the rates, and tells what is left."""
    counts = Counter(delivered)
    buckets = dict(allowance.buckets)
    for queue in allowance.queues:
        if queue.id in buckets and counts[queue.name]:
            bucket = buckets[queue.id].take(counts[queue.name], session.now)
            await session.run("set_rate_left", queue_id=queue.id, rate_left=bucket.left, now=bucket.left_at)
            buckets[queue.id] = bucket
    return replace(allowance, buckets=buckets)


async def _count_leased(session: Session, queues: Sequence[Queue]) -> Mapping[int, int]:
    counted = [queue.id for queue in queues if queue.settings.concurrency_limit is not None]
    if not counted:
        return {}
    rows = await session.rows("count_leased", queue_ids=counted, now=session.now)
    return {row["queue_id"]: row["leased"] for row in rows}


def _bucket(queue: Queue) -> RateBucket | None:
    rate = queue.settings.rate_per_second
    return None if rate is None else RateBucket(rate, queue.rate_left, queue.rate_left_at)


def _room(queue: Queue, limit: int, leased: Mapping[int, int], bucket: RateBucket | None, now: datetime) -> int:
    most = queue.settings.concurrency_limit
    by_concurrency = limit if most is None else most - leased.get(queue.id, 0)
    by_rate = limit if bucket is None else bucket.allowed(now)
    return max(0, min(limit, by_concurrency, by_rate))
