"""Very many rows at once, by INSERT … SELECT: what calls would take hours for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import text

from app.repository.dialect import Dialect

SECONDS_AFTER = {
    "postgresql": "CAST(:{start} AS timestamptz) + ({seconds}) * interval '1 second'",
    "mysql": "timestampadd(SECOND, {seconds}, :{start})",
    "sqlite": ":{start} + ({seconds}) * 1000000",
}
ANALYZE = {
    "postgresql": "VACUUM ANALYZE {table}",
    "mysql": "ANALYZE TABLE {table}",
    "sqlite": "ANALYZE {table}",
}
TABLES = ("mq_tasks", "mq_task_history", "mq_task_dlq", "mq_task_attempts", "mq_queues", "mq_queue_graves")
PAYLOAD = {"postgresql": "CAST('{}' AS bytea)", "mysql": "x'7b7d'", "sqlite": "x'7b7d'"}
JOINED = {"postgresql": "{prefix} || i", "mysql": "concat({prefix}, i)", "sqlite": "{prefix} || i"}


@dataclass(frozen=True)
class Filler:
    """Fills a migrated database; times begin at `start` and are a second apart."""

    dialect: Dialect
    tenant: str
    start: datetime
    _filled: list[int] = field(default_factory=lambda: [0])

    async def prepare(self, most: int) -> None:
        """Makes the numbers that rows are counted by: 1 to `most`, and some more."""
        async with self.dialect.connect(write=True) as connection:
            await connection.execute(text("CREATE TABLE fill_numbers (i INTEGER PRIMARY KEY)"))
            await connection.execute(text("INSERT INTO fill_numbers VALUES (1)"))
            numbers = 1
            while numbers < most:
                await connection.execute(text(f"INSERT INTO fill_numbers SELECT i + {numbers} FROM fill_numbers"))
                numbers *= 2
            await connection.commit()

    async def tasks(self, queue: str, count: int, status: str = "ready", **columns: str) -> None:
        """Live tasks in a queue that is there; `columns` are expressions of `i`."""
        leased = status == "leased"
        await self._insert(
            "mq_tasks",
            count,
            queue,
            {
                "queue_id": f"(SELECT id FROM mq_queues WHERE tenant_id = '{self.tenant}' AND name = '{queue}')",
                "id": self.named("task"),
                "status": f"'{status}'",
                "available_at": self.after("i"),
                "updated_at": self.after("0"),
                "lease_owner": "'worker'" if leased else "NULL",
                "lease_token_hash": "'hash'" if leased else "NULL",
                "lease_until": self.after("i + 1000000") if leased else "NULL",
                "leased_at": self.after("0") if leased else "NULL",
                **columns,
            },
        )

    async def history(self, queue: str, count: int, status: str = "done", **columns: str) -> None:
        finished = {
            "finished_at": self.after("i"),
            "keep_until": self.after("i + 1000000"),
            "available_at": self.after("0"),
        }
        task_id = {"task_id": self.named("task")}
        await self._insert("mq_task_history", count, queue, {**task_id, "status": f"'{status}'", **finished, **columns})

    async def dead_letters(self, queue: str, count: int, **columns: str) -> None:
        failed = {"failed_at": self.after("i"), "available_at": self.after("0"), "reason": "'broken'"}
        await self._insert("mq_task_dlq", count, queue, {"task_id": self.named("task"), **failed, **columns})

    async def attempts(self, queue: str, count: int, **columns: str) -> None:
        """An attempt for each of so many tasks that are filled in next."""
        values = {
            "tenant_id": f"'{self.tenant}'",
            "task_id": self.named("task"),
            "queue": f"'{queue}'",
            "type": "''",
            "attempt_no": "1",
            "started_at": self.after("0"),
            "finished_at": self.after("i"),
            "success": "true",
            **columns,
        }
        await self._select_into("mq_task_attempts", count, values)

    async def graves(self, count: int) -> None:
        """Queues that are gone, and had nothing."""
        values = {
            "queue_id": "1000000 + i",
            "tenant_id": f"'{self.tenant}'",
            "ended_at": self.after("0"),
            "deleted_at": self.after("0"),
            "has_leases": "false",
        }
        await self._select_into("mq_queue_graves", count, values)

    async def analyze(self) -> None:
        """Lets the database know what is in its tables."""
        async with self.dialect.engine.connect() as connection:
            if self.dialect.name == "postgresql":
                await connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in TABLES:
                await connection.execute(text(ANALYZE[self.dialect.name].format(table=table)))
            await connection.commit()

    def after(self, seconds: str) -> str:
        """An instant so many seconds after the start."""
        return SECONDS_AFTER[self.dialect.name].format(start="start", seconds=seconds)

    def named(self, prefix: str) -> str:
        return JOINED[self.dialect.name].format(prefix=f"'{prefix}-{self._filled[0]}-'")

    async def _insert(self, table: str, count: int, queue: str, columns: Mapping[str, str]) -> None:
        described = {
            "tenant_id": f"'{self.tenant}'",
            "queue": f"'{queue}'",
            "topic": f"'{queue}'",
            "type": "''",
            "payload": PAYLOAD[self.dialect.name],
            "payload_is_json": "true",
            "content_type": "'application/json'",
            "meta": "'{}'",
            "size": "500",
            "priority": "20",
            "dedupe_seconds": "0",
            "attempts": "0",
            "max_attempts": "5",
            "created_at": self.after("0"),
        }
        await self._select_into(table, count, {**described, **columns})
        self._filled[0] += 1

    async def _select_into(self, table: str, count: int, columns: Mapping[str, str]) -> None:
        sql = (
            f"INSERT INTO {table} ({', '.join(columns)})"
            f" SELECT {', '.join(columns.values())} FROM fill_numbers WHERE i <= :count ORDER BY i"
        )
        async with self.dialect.connect(write=True) as connection:
            await connection.execute(text(sql), {"start": self.dialect.encode(self.start), "count": count})
            await connection.commit()
