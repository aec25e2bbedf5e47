"""The cycle as the bare statements that the service runs for it, through asyncpg alone: the limit.

Which statements those are is said here once more: when the repository's change, so does this.
"""

import asyncio
from datetime import timedelta

import asyncpg

from app.domain.lease_token import new_lease_tokens
from app.domain.queue import DEFAULT_QUEUE_SETTINGS
from app.repository.asyncpg_connection import AsyncpgConnection, NumberedStatements
from app.repository.grants import grant_parameters, joined
from app.repository.postgresql import PLANNING
from app.repository.postgresql_shortcuts import task_columns
from app.repository.starts import NO_START
from bench.direct.repository_cycle import opened_repository, run_cycle
from bench.direct.workload import LEASE_SECONDS, MAX_BYTES, QUEUE, TENANT, cycles_per_second, new_tasks
from bench.load import Plan

STATEMENTS = NumberedStatements("postgresql", lambda value: value)


class AsyncpgCycle:
    """One connection that takes batches through the cycle, a statement a step."""

    def __init__(self, driver: asyncpg.Connection) -> None:
        self._connection = AsyncpgConnection(driver, STATEMENTS)

    async def run(self, batch: int) -> int:
        """Enqueue, reserve and ack so many tasks."""
        columns = task_columns(new_tasks(batch))
        await self._connection.fetch("enqueue_at_once", {**columns, "now": None, "tenant_id": TENANT})
        hashes = await self._reserve(batch)
        return await self._ack(hashes) if hashes else 0

    async def _reserve(self, limit: int) -> dict[str, str]:
        """Lease tasks; their token hashes by id."""
        grants = grant_parameters(["bench"] * limit, new_lease_tokens(limit))
        parameters = {
            "now": None, "tenant_id": TENANT, "queue": QUEUE, "lease": timedelta(seconds=LEASE_SECONDS),
            "lease_seconds": LEASE_SECONDS, "exclude_ids": [], "limit": limit, "max_bytes": MAX_BYTES,
            **grants, **NO_START,
        }  # fmt: skip
        rows = await self._connection.fetch("claim_at_once", parameters)
        hashes = str(grants["token_hashes"]).split()
        return {row["id"]: hashes[row["position"] - 1] for row in rows}

    async def _ack(self, hashes: dict[str, str]) -> int:
        parameters: dict[str, object] = {
            "now": None, "tenant_id": TENANT, "ids": joined(hashes), "token_hashes": joined(hashes.values()),
            "results": None, "default_history_days": DEFAULT_QUEUE_SETTINGS.history_days,
        }  # fmt: skip
        acked = await self._connection.fetch("ack_at_once", parameters)
        return sum(len(row["ids"].split()) for row in acked)


def measure_asyncpg(database_url: str, plan: Plan) -> float:
    """Tasks a second by bare statements, on as many connections as the plan has."""

    async def measure() -> float:
        async with opened_repository(database_url, pool_size=1) as repository:
            # Makes the queue, which a first enqueue does.
            await run_cycle(repository, 1)
        # Planned as the service's statements are.
        opened = (asyncpg.connect(database_url, server_settings=PLANNING) for _ in range(plan.connections))
        connections = await asyncio.gather(*opened)
        try:
            cycles = [AsyncpgCycle(connection).run for connection in connections]
            return await cycles_per_second(cycles, plan.batch, plan.seconds, plan.warmup_seconds)
        finally:
            await asyncio.gather(*(connection.close() for connection in connections))

    return asyncio.run(measure())
