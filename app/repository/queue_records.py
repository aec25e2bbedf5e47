"""Between rows of queues and what the domain speaks of."""

from datetime import datetime
from typing import Any

from app.domain.backoff import Backoff
from app.domain.queue import Queue, QueueSettings
from app.repository.connection import Row


def backoff_of(row: Row) -> Backoff:
    return Backoff(
        row["backoff_base_seconds"], row["backoff_factor"], row["backoff_max_seconds"], row["backoff_jitter"]
    )


def queue_of(row: Row) -> Queue:
    settings = QueueSettings(
        topic=row["topic"],
        exclusive=bool(row["exclusive"]),
        keep_alive_seconds=row["keep_alive_seconds"],
        max_attempts=row["max_attempts"],
        lease_seconds=row["lease_seconds"],
        max_lease_seconds=row["max_lease_seconds"],
        backoff=backoff_of(row),
        rate_per_second=row["rate_per_second"],
        concurrency_limit=row["concurrency_limit"],
        paused=bool(row["paused"]),
        history_days=row["history_days"],
        dlq_days=row["dlq_days"],
    )
    return Queue(
        id=row["id"],
        name=row["name"],
        declared=bool(row["declared"]),
        settings=settings,
        keep_alive_until=row["keep_alive_until"],
        rate_left=row["rate_left"],
        rate_left_at=row["rate_left_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def settings_record(settings: QueueSettings, keep_alive_until: datetime | None) -> dict[str, Any]:
    """The columns that settings are kept in."""
    return {
        "topic": settings.topic,
        "exclusive": settings.exclusive,
        "keep_alive_seconds": settings.keep_alive_seconds,
        "keep_alive_until": keep_alive_until,
        "max_attempts": settings.max_attempts,
        "lease_seconds": settings.lease_seconds,
        "max_lease_seconds": settings.max_lease_seconds,
        "backoff_base_seconds": settings.backoff.base_seconds,
        "backoff_factor": settings.backoff.factor,
        "backoff_max_seconds": settings.backoff.max_seconds,
        "backoff_jitter": settings.backoff.jitter,
        "rate_per_second": settings.rate_per_second,
        "concurrency_limit": settings.concurrency_limit,
        "paused": settings.paused,
        "history_days": settings.history_days,
        "dlq_days": settings.dlq_days,
    }
