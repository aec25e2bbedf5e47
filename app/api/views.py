"""What callers get to see of queues and of what they did, as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from app.api.task_views import instant, task_view
from app.domain.commands import Extended, Requeued, Reserved, Settled
from app.domain.doctor import Diagnosis
from app.domain.errors import LeaseMQError
from app.domain.queue import Queue
from app.domain.task import Attempt, Enqueued, Status
from app.domain.topology import Explanation, Operation, Published, QueueStats, Topic

Json = dict[str, Any]


def enqueued(outcome: Enqueued) -> Json:
    return {
        "id": outcome.id,
        "queue": outcome.queue,
        "status": outcome.status,
        "available_at": instant(outcome.available_at),
        "existed": outcome.existed,
    }


def reserved(reserved: Reserved) -> Json:
    return {
        "tasks": [task_view(lease.task, lease.lease_token) for lease in reserved.tasks],
        "server_time": instant(reserved.server_time),
        "next_available_at": instant(reserved.next_available_at),
    }


def extended(outcome: Extended) -> Json:
    return {"lease_until": instant(outcome.lease_until), "server_time": instant(outcome.server_time)}


def settled(outcome: Settled) -> Json:
    return {"id": outcome.id, "status": outcome.status}


def nacked(outcome: Settled) -> Json:
    return {**settled(outcome), "attempts": outcome.attempts, "available_at": instant(outcome.available_at)}


class SettledItem(Struct, frozen=True, gc=False):
    """One of a batch; see `TaskView`."""

    id: str
    ok: bool
    status: Status


def settled_item(outcome: Settled) -> SettledItem:
    return SettledItem(outcome.id, True, outcome.status)


def nacked_item(outcome: Settled) -> Json:
    return {"id": outcome.id, "ok": True, **nacked(outcome)}


def extended_item(outcome: Extended) -> Json:
    return {"id": outcome.id, "ok": True, **extended(outcome)}


def refused(task_id: str, error: LeaseMQError) -> Json:
    return {"id": task_id, "ok": False, "code": error.code, "detail": error.detail}


def attempt(attempt: Attempt) -> Json:
    return {
        "attempt_no": attempt.attempt_no,
        "worker_id": attempt.worker_id,
        "started_at": instant(attempt.started_at),
        "finished_at": instant(attempt.finished_at),
        "success": attempt.success,
        "reason": attempt.reason,
    }


def requeued(requeued: Requeued) -> Json:
    return {"requeued": requeued.requeued, "skipped": requeued.skipped, "remaining": requeued.remaining}


def queue(queue: Queue) -> Json:
    settings = queue.settings
    return {
        "name": queue.name,
        "topic": settings.topic,
        "exclusive": settings.exclusive,
        "keep_alive_seconds": settings.keep_alive_seconds,
        "keep_alive_until": instant(queue.keep_alive_until),
        "max_attempts": settings.max_attempts,
        "lease_seconds": settings.lease_seconds,
        "max_lease_seconds": settings.max_lease_seconds,
        "backoff": {
            "base_seconds": settings.backoff.base_seconds,
            "factor": settings.backoff.factor,
            "max_seconds": settings.backoff.max_seconds,
            "jitter": settings.backoff.jitter,
        },
        "rate_per_second": settings.rate_per_second,
        "concurrency_limit": settings.concurrency_limit,
        "paused": settings.paused,
        "history_days": settings.history_days,
        "dlq_days": settings.dlq_days,
        "created_at": instant(queue.created_at),
        "updated_at": instant(queue.updated_at),
    }


def topic(topic: Topic) -> Json:
    return {"name": topic.name, "created_at": instant(topic.created_at)}


def published(published: Published) -> Json:
    deliveries = [
        {"queue": delivery.queue, "id": delivery.id, "existed": delivery.existed} for delivery in published.deliveries
    ]
    return {"publish_id": published.publish_id, "deliveries": deliveries}


def stats(stats: QueueStats) -> Json:
    return {
        **{status.value: stats.counts.get(status, 0) for status in Status},
        "ready_by_priority": {str(priority): tasks for priority, tasks in stats.ready_by_priority.items()},
        "oldest_ready_seconds": stats.oldest_ready_seconds,
        "next_available_at": instant(stats.next_available_at),
        "exact": stats.exact,
    }


def explanation(explanation: Explanation) -> Json:
    facts = {
        name: instant(value) if isinstance(value, datetime) else value for name, value in explanation.facts.items()
    }
    return {"reason": explanation.reason, "detail": explanation.detail, **facts}


def operation(operation: Operation) -> Json:
    return {
        "id": operation.id,
        "status": operation.status,
        "rate_per_second": operation.rate_per_second,
        "requeued": operation.requeued,
        "skipped": operation.skipped,
        "remaining": operation.remaining,
        "created_at": instant(operation.created_at),
        "updated_at": instant(operation.updated_at),
        "finished_at": instant(operation.finished_at),
    }


def diagnosis(diagnosis: Diagnosis) -> Json:
    return {
        "database": diagnosis.database,
        "status": diagnosis.severity,
        "server_time": instant(diagnosis.server_time),
        "findings": [
            {
                "check": finding.check,
                "severity": finding.severity,
                "detail": finding.detail,
                "advice": finding.advice,
                **finding.facts,
            }
            for finding in diagnosis.findings
        ],
    }


def page(items: Sequence[object], next_cursor: str | None) -> Json:
    return {"items": items, "next_cursor": next_cursor}
