"""The cycle as the bare statements that the service would run for it, through asyncpg alone: the limit.

Which statements those are, and in what order, is said here once more: when the repository's change, so does this.
"""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg

from app.domain.lease_token import lease_token_hash, new_lease_token
from bench.direct.asyncpg_statements import load_asyncpg_statements
from bench.direct.repository_cycle import opened_repository, run_cycle
from bench.direct.workload import LEASE_SECONDS, MAX_BYTES, PAYLOAD, QUEUE, TENANT, cycles_per_second, new_tasks
from bench.load import Plan

SQL = load_asyncpg_statements()
HISTORY = timedelta(days=14)


class AsyncpgCycle:
    """One connection that takes batches through the cycle, a transaction a step."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def run(self, batch: int) -> int:
        """Enqueue, reserve and ack so many tasks."""
        await self._enqueue(batch)
        tokens = await self._reserve(batch)
        return await self._ack(tokens) if tokens else 0

    async def _enqueue(self, batch: int) -> None:
        async with self._connection.transaction():
            now, queue_id = await self._open([QUEUE])
            tasks = [_record(task.id, queue_id, position, now) for position, task in enumerate(new_tasks(batch), 1)]
            await SQL["insert_tasks"].rows(
                self._connection, tenant_id=TENANT, now=now, tasks=json.dumps(tasks), payloads=[PAYLOAD] * batch
            )

    async def _reserve(self, limit: int) -> dict[str, str]:
        """Lease tasks; their token hashes by id."""
        hashes = [lease_token_hash(new_lease_token()) for _ in range(limit)]
        async with self._connection.transaction():
            now, queue_id = await self._open([QUEUE])
            await SQL["probe_overdue"].rows(self._connection, queue_ids=[queue_id], now=now)
            rows = await SQL["claim_queue"].rows(
                self._connection, queue_id=queue_id, now=now, lease_until=now + timedelta(seconds=LEASE_SECONDS),
                limit=limit, worker_id="bench", exclude_ids=[], token_hashes=hashes, max_bytes=MAX_BYTES,
            )  # fmt: skip
        return {row["id"]: hashes[row["position"] - 1] for row in rows}

    async def _ack(self, hashes: dict[str, str]) -> int:
        async with self._connection.transaction():
            now, _ = await self._open([])
            rows = await SQL["lock_tasks"].rows(self._connection, tenant_id=TENANT, ids=sorted(hashes))
            held = [row for row in rows if row["lease_token_hash"] == hashes[row["id"]]]
            moves = [_move(row["seq"], row["available_at"], hashes[row["id"]], now) for row in held]
            await SQL["archive_many"].rows(self._connection, moves=json.dumps(moves))
            await SQL["delete_many"].rows(self._connection, seqs=[row["seq"] for row in held])
        return len(held)

    async def _open(self, names: Sequence[str]) -> tuple[datetime, int]:
        """The instant of the transaction, and the queue's id if there is a name."""
        rows = await SQL["open"].rows(self._connection, now=None, tenant_id=TENANT, names=list(names))
        return rows[0]["now"], rows[0]["id"]


def _record(task_id: str, queue_id: int, position: int, now: datetime) -> dict[str, object]:
    return {
        "position": position, "queue_id": queue_id, "id": task_id, "queue": QUEUE, "topic": QUEUE, "publish_id": None,
        "type": "", "payload_is_json": True, "content_type": "application/json", "meta": "{}",
        "size": len(PAYLOAD) + 2, "priority": 20, "dedupe_key": None, "dedupe_seconds": 0.0, "status": "ready",
        "max_attempts": 5, "available_at": _text(now), "expires_at": None, "timeout_seconds": None,
    }  # fmt: skip


def _move(seq: int, available_at: datetime, token_hash: str, now: datetime) -> dict[str, object]:
    return {
        "seq": seq, "status": "done", "at": _text(now), "attempts": 1, "available_at": _text(available_at),
        "reason": None, "error": None, "error_at": None, "result": None, "token_hash": token_hash,
        "token_fate": "acked", "keep_until": _text(now + HISTORY), "dedupe_until": None,
    }  # fmt: skip


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()


def measure_asyncpg(database_url: str, plan: Plan) -> float:
    """Tasks a second by bare statements, on as many connections as the plan has."""

    async def measure() -> float:
        async with opened_repository(database_url, pool_size=1) as repository:
            # Makes the queue, which a first enqueue does.
            await run_cycle(repository, 1)
        connections = await asyncio.gather(*(asyncpg.connect(database_url) for _ in range(plan.connections)))
        try:
            cycles = [AsyncpgCycle(connection).run for connection in connections]
            return await cycles_per_second(cycles, plan.batch, plan.seconds, plan.warmup_seconds)
        finally:
            await asyncio.gather(*(connection.close() for connection in connections))

    return asyncio.run(measure())
