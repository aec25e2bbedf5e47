"""PostgreSQL: the plain cases in one statement each, which is a transaction by itself."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TypeVar

from app.domain.commands import AckItem, Reserved, ReserveRequest, Settled
from app.domain.lease_token import new_lease_tokens
from app.domain.queue import DEFAULT_QUEUE_SETTINGS
from app.domain.task import DEFAULT_PRIORITY, Enqueued, NewTask, ReservedTask, Status
from app.repository.connection import Row
from app.repository.enqueueing import accepted
from app.repository.grants import grant_parameters, joined
from app.repository.lane_memory import LaneMemory
from app.repository.records import leased_task_of
from app.repository.session import Database
from app.repository.starts import NO_START, LaneEnd, Start, start_behind

Value = TypeVar("Value")


class PostgreSQLShortcuts:
    """See `Shortcuts`: enqueue, reserve and ack by one round trip each."""

    def __init__(self, database: Database, memory: LaneMemory) -> None:
        self._database = database
        self._memory = memory

    async def enqueue_batches(
        self, tenant_id: str, batches: Sequence[Sequence[NewTask]], now: datetime | None
    ) -> list[list[Enqueued]] | None:
        """Accepts tasks without ids of their callers, and with keys that are free, into queues that are there.

        All, or none: somebody else who takes one of the keys at this very moment makes the statement fail.
        """
        tasks = [task for batch in batches for task in batch]
        keys = [(task.queue, task.dedupe_key) for task in tasks if task.dedupe_key is not None]
        if any(task.id_is_given for task in tasks) or len(set(keys)) < len(keys):
            return None
        rows = await self._database.at_once("enqueue_at_once", now=now, tenant_id=tenant_id, **task_columns(tasks))
        if not rows or not rows[0]["accepted"]:
            return None
        return [[accepted(task, rows[0]["now"], existed=False) for task in batch] for batch in batches]

    async def reserve_many(self, requests: Sequence[ReserveRequest], now: datetime | None) -> list[Reserved | None]:
        """Leases from one queue that is open, has no limits, and in which nothing is overdue."""
        wish = requests[0]
        if len(wish.queues) > 1 or wish.types:
            return [None for _ in requests]
        key = (wish.tenant_id, wish.queues[0], None)
        start = self._memory.starts.find(key) if now is None else None
        owners = [index for index, request in enumerate(requests) for _ in range(request.limit)]
        tokens = new_lease_tokens(len(owners))
        rows = await self._database.at_once(
            "claim_at_once",
            now=now,
            tenant_id=wish.tenant_id,
            queue=wish.queues[0],
            lease=None if wish.lease_seconds is None else timedelta(seconds=wish.lease_seconds),
            lease_seconds=wish.lease_seconds,
            exclude_ids=list(wish.exclude_ids),
            limit=len(owners),
            max_bytes=wish.max_bytes,
            **grant_parameters([requests[index].worker_id or "" for index in owners], tokens),
            **(NO_START if start is None else start.parameters()),
        )
        in_order = sorted(rows or (), key=itemgetter("position"))
        shares: list[list[ReservedTask]] = [[] for _ in requests]
        for index, token, row in zip(owners, tokens, in_order, strict=False):
            task = leased_task_of(row, in_order[0], wish.tenant_id, wish.queues[0], requests[index].worker_id)
            shares[index].append(ReservedTask(task, token))
        # What was asked to be passed over is not behind an end.
        if in_order and not wish.exclude_ids and now is None:
            self._memory.learn([LaneEnd(key, _start(in_order[0], in_order[-1]), start, leased=True)])
        return [_reserved(share, in_order[0]["now"]) if share else None for share in shares]

    async def ack_many(self, tenant_id: str, items: Sequence[AckItem], now: datetime | None) -> list[Settled | None]:
        """Acks what is held under its token, unless its dedupe key outlasts it."""
        log = self._database.logs(success=True)
        # Where a task is named twice, the one after the other counts.
        if log is None or len({item.id for item in items}) < len(items):
            return [None for _ in items]
        results = {item.id: item.result for item in items if item.result is not None}
        rows = await self._database.at_once(
            "ack_and_log_at_once" if log else "ack_at_once",
            now=now,
            tenant_id=tenant_id,
            ids=joined([item.id for item in items]),
            token_hashes=joined([item.token_hash for item in items]),
            results=json.dumps(results) if results else None,
            default_history_days=DEFAULT_QUEUE_SETTINGS.history_days,
        )
        queues = {task_id: row["queue"] for row in rows or () for task_id in row["ids"].split(" ")}
        return [Settled(item.id, queues[item.id], Status.DONE) if item.id in queues else None for item in items]


def _start(first: Row, last: Row) -> Start:
    position = (last["priority"], last["available_at"] or last["created_at"], last["seq"])
    return start_behind(first["queue_id"], first["returns"], first["now"], position)


def _reserved(share: Sequence[ReservedTask], now: datetime) -> Reserved:
    # What was last done to a task may be later than when the statement began: its lease begins after that.
    return Reserved(share, max(now, *(lease.task.updated_at for lease in share)))


def task_columns(tasks: Sequence[NewTask]) -> dict[str, object]:
    """The tasks as one array for each column, which is empty where nothing out of the usual is said in it."""
    queues = [task.queue for task in tasks]
    names = list(dict.fromkeys(queues))
    return {
        "names": names,
        "default_priority": DEFAULT_PRIORITY,
        "ids": [task.id for task in tasks],
        "queues": _unless_usual(queues, names[0]),
        "topics": [] if all(task.topic == task.queue for task in tasks) else [task.topic for task in tasks],
        "publish_ids": _unless_usual([task.publish_id for task in tasks], None),
        "types": _unless_usual([task.type for task in tasks], ""),
        "payloads": [task.payload.data for task in tasks],
        "are_json": _unless_usual([task.payload.is_json for task in tasks], True),
        "content_types": _unless_usual([task.payload.content_type for task in tasks], "application/json"),
        "metas": _unless_usual([task.meta for task in tasks], "{}"),
        "sizes": [task.size() for task in tasks],
        "priorities": _unless_usual([task.priority for task in tasks], DEFAULT_PRIORITY),
        "dedupe_keys": _unless_usual([task.dedupe_key for task in tasks], None),
        "dedupe_seconds": _unless_usual([task.dedupe_seconds for task in tasks], 0.0),
        "max_attempts": _unless_usual([task.max_attempts for task in tasks], None),
        "delays": [timedelta(seconds=delay) for delay in _unless_usual([task.delay_seconds for task in tasks], 0.0)],
        "available_at": _unless_usual([task.available_at for task in tasks], None),
        "ttls": [_interval(seconds) for seconds in _unless_usual([task.ttl_seconds for task in tasks], None)],
        "expires_at": _unless_usual([task.expires_at for task in tasks], None),
        "timeouts": _unless_usual([task.timeout_seconds for task in tasks], None),
    }


def _unless_usual(values: list[Value], usual: Value) -> list[Value]:
    return [] if values.count(usual) == len(values) else values


def _interval(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
