"""Fills the tables of a PostgreSQL database: one real row of each kind, copied as often as is wanted.

Copying knows nothing of the columns but those that must differ, so that it fits whatever the schema is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import asyncpg
from msgspec.structs import replace

from app.domain.commands import AckItem
from app.domain.lease_token import lease_token_hash
from app.repository.protocol import Repository
from bench.direct.repository_cycle import opened_repository, reserve_request
from bench.direct.workload import TENANT, new_tasks

# Columns that the database numbers itself are left to it.
COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = $1 AND is_identity = 'NO'
ORDER BY ordinal_position
"""
ROWS_AT_ONCE = 500_000
# In order of time, as the service's own ids are.
NEW_ID = "uuidv7()::text"

Filler = Callable[["Filling"], Awaitable[None]]


class Filling:
    """The tables of one database while they are filled."""

    def __init__(self, connection: asyncpg.Connection, repository: Repository) -> None:
        self._connection = connection
        self._repository = repository

    async def add_ready(self, rows: int) -> None:
        """Ready tasks in the queue that is measured, behind nothing and in front of nothing."""
        await self._copy_task(rows, {})

    async def add_scheduled(self, rows: int) -> None:
        """Scheduled tasks of higher priority in the queue that is measured."""
        await self._copy_task(
            rows, {"status": "'scheduled'", "priority": "100", "available_at": "now() + interval '1 day'"}
        )

    async def add_leased(self, rows: int) -> None:
        """Tasks in the queue that is measured which somebody works on."""
        [task] = new_tasks(1)
        await self._repository.enqueue_many(TENANT, [replace(task, priority=1000)])
        await self._repository.reserve_many([reserve_request(1)])
        later = {"id": NEW_ID, "lease_until": "now() + interval '1 day'"}
        await self._copy("mq_tasks", "id", task.id, rows, later)

    async def add_history(self, rows: int, age: str = "0") -> None:
        """Tasks that were done so long ago."""
        [task] = new_tasks(1)
        await self._repository.enqueue_many(TENANT, [replace(task, priority=1000)])
        [reserved] = await self._repository.reserve_many([reserve_request(1)])
        items = [AckItem(lease.task.id, lease_token_hash(lease.lease_token)) for lease in reserved.tasks]
        await self._repository.ack_many(TENANT, items)
        finished = {"task_id": NEW_ID, "finished_at": f"t.finished_at - interval '{age}'"}
        await self._copy("mq_task_history", "task_id", task.id, rows, finished)

    async def add_queues(self, queues: int) -> None:
        """Other queues, with a task in each."""
        for first in range(0, queues, 1000):
            numbers = range(first, min(first + 1000, queues))
            tasks = [task for number in numbers for task in new_tasks(1, f"other-{number}")]
            await self._repository.enqueue_many(TENANT, tasks)

    async def execute(self, statement: str, *values: object) -> None:
        """Fill in what has a statement of its own."""
        await self._connection.execute(statement, *values, timeout=600)

    async def settle(self) -> None:
        """Leave the tables as autovacuum and a checkpoint would, so that neither comes while something is measured."""
        await self._connection.execute("VACUUM ANALYZE")
        await self._connection.execute("CHECKPOINT")

    async def _copy_task(self, rows: int, changes: Mapping[str, str]) -> None:
        [task] = new_tasks(1)
        await self._repository.enqueue_many(TENANT, [task])
        await self._copy("mq_tasks", "id", task.id, rows, {"id": NEW_ID, **changes})

    async def _copy(self, table: str, key: str, value: str, rows: int, changes: Mapping[str, str]) -> None:
        """Copy the row whose key has the value, with an expression for each column that changes."""
        names = [row["column_name"] for row in await self._connection.fetch(COLUMNS, table)]
        columns, values = ", ".join(names), ", ".join(changes.get(name, f"t.{name}") for name in names)
        statement = (
            f"INSERT INTO {table} ({columns}) SELECT {values}"
            f" FROM {table} AS t CROSS JOIN generate_series(1, $2) WHERE t.{key} = $1"
        )
        for first in range(0, rows, ROWS_AT_ONCE):
            await self._connection.execute(statement, value, min(ROWS_AT_ONCE, rows - first), timeout=600)


@asynccontextmanager
async def filling(database_url: str) -> AsyncIterator[Filling]:
    """Open a database for filling, its schema up to date."""
    async with opened_repository(database_url, pool_size=1) as repository:
        connection = await asyncpg.connect(database_url)
        try:
            yield Filling(connection, repository)
        finally:
            await connection.close()
