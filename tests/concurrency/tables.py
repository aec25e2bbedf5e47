"""One tenant's rows, read straight from the database."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncEngine

SAME_KEY_TWICE = """
SELECT queue, dedupe_key, count(*) AS holders FROM mq_tasks
WHERE tenant_id = :tenant AND dedupe_key IS NOT NULL GROUP BY queue, dedupe_key HAVING count(*) > 1
"""
IN_TWO_PLACES = """
SELECT task_id, count(*) AS places FROM (
    SELECT id AS task_id FROM mq_tasks WHERE tenant_id = :tenant AND id IS NOT NULL
    UNION ALL SELECT task_id FROM mq_task_history WHERE tenant_id = :tenant
    UNION ALL SELECT task_id FROM mq_task_dlq WHERE tenant_id = :tenant
) AS everywhere GROUP BY task_id HAVING count(*) > 1
"""
NOT_WHOLE = """
SELECT seq, id, status FROM mq_tasks WHERE tenant_id = :tenant AND NOT (
    attempts >= 0 AND status IN ('scheduled', 'ready', 'leased', 'done')
    AND (status = 'leased') = (lease_until IS NOT NULL)
    AND (lease_owner IS NULL) = (lease_until IS NULL)
    AND (lease_token_hash IS NULL) = (lease_until IS NULL)
    AND (leased_at IS NULL) = (lease_until IS NULL)
    AND (status = 'done') = (id IS NULL)
    AND (status = 'done') = (dedupe_until IS NOT NULL)
)
"""
TOMB_OF_NOBODY = """
SELECT t.seq, t.tombstone_id FROM mq_tasks AS t WHERE t.tenant_id = :tenant AND t.status = 'done' AND NOT EXISTS (
    SELECT 1 FROM mq_task_history AS h
    WHERE h.tenant_id = t.tenant_id AND h.task_id = t.tombstone_id AND h.status = 'done'
)
"""
BROKEN = (SAME_KEY_TWICE, IN_TWO_PLACES, NOT_WHOLE, TOMB_OF_NOBODY)


class Tables:
    """What is true in the database, whatever the service says."""

    def __init__(self, engine: AsyncEngine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    async def rows(self, query: str, **parameters: object) -> Sequence[RowMapping]:
        """Runs a query that names the tenant as `:tenant`."""
        async with self._engine.connect() as connection:
            result = await connection.execute(text(query), {"tenant": self._tenant, **parameters})
            return result.mappings().all()

    async def broken(self) -> list[RowMapping]:
        """The rows that break what must always hold; the ids of a test's tasks must never be used twice."""
        return [row for query in BROKEN for row in await self.rows(query)]

    async def live(self) -> dict[str, RowMapping]:
        """Live tasks by id."""
        rows = await self.rows("SELECT * FROM mq_tasks WHERE tenant_id = :tenant AND id IS NOT NULL")
        return {row["id"]: row for row in rows}

    async def key_holders(self) -> dict[str, str]:
        """The task that holds each dedupe key, live or done: one at most, or this fails."""
        assert await self.rows(SAME_KEY_TWICE) == []
        rows = await self.rows(
            "SELECT dedupe_key, coalesce(id, tombstone_id) AS holder FROM mq_tasks"
            " WHERE tenant_id = :tenant AND dedupe_key IS NOT NULL"
        )
        return {row["dedupe_key"]: row["holder"] for row in rows}

    async def history(self, status: str) -> dict[str, RowMapping]:
        """Tasks that finished in this way, by id; a task that finished twice fails."""
        query = "SELECT * FROM mq_task_history WHERE tenant_id = :tenant AND status = :status"
        return _by_task_id(await self.rows(query, status=status))

    async def dead(self) -> dict[str, RowMapping]:
        """Dead letters by task; a task that is dead twice fails."""
        return _by_task_id(await self.rows("SELECT * FROM mq_task_dlq WHERE tenant_id = :tenant"))

    async def attempts(self) -> dict[str, list[RowMapping]]:
        """The attempt log by task, in order of number."""
        query = "SELECT * FROM mq_task_attempts WHERE tenant_id = :tenant ORDER BY attempt_no, id"
        by_task: dict[str, list[Any]] = defaultdict(list)
        for row in await self.rows(query):
            by_task[row["task_id"]].append(row)
        return by_task


def _by_task_id(rows: Sequence[RowMapping]) -> dict[str, RowMapping]:
    by_task = {row["task_id"]: row for row in rows}
    assert len(by_task) == len(rows)
    return by_task
