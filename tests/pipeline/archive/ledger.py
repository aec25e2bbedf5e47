"""A database whose every row of the tables that are archived is kept a second time, by triggers, as it was inserted."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from sqlalchemy import text

from app.pipeline.lake import open_lake
from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, Column, Kind, Table
from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect, open_repository
from app.repository.schema import migrate
from tests.conformance.steps import Store, ack_item, fail_item, json_payload, new_task

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ARCHIVED = (HISTORY, ATTEMPTS, DLQ)
TRIGGERS = {
    "postgresql": (
        "CREATE FUNCTION keep_{name}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO kept_{name} ({columns}) VALUES ({values}); RETURN NULL; END $$",
        "CREATE TRIGGER keep_{name} AFTER INSERT ON {relation} FOR EACH ROW EXECUTE FUNCTION keep_{name}()",
    ),
    "mysql": (
        "CREATE TRIGGER keep_{name} AFTER INSERT ON {relation} FOR EACH ROW"
        " INSERT INTO kept_{name} ({columns}) VALUES ({values})",
    ),
    "sqlite": (
        "CREATE TRIGGER keep_{name} AFTER INSERT ON {relation}"
        " BEGIN INSERT INTO kept_{name} ({columns}) VALUES ({values}); END",
    ),
}

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Ledger:
    """A migrated database with its triggers, and a tenant's calls on it."""

    url: str
    dialect: Dialect
    store: Store

    async def finish_many(self, count: int, at: datetime, queue: str = "work") -> list[str]:
        """New tasks that are done at an instant, with an attempt each; returns their ids."""
        leased = await self._lease_many(count, at, queue)
        items = [ack_item(task, '{"naïve": "🐝"}') for task in leased]
        await self.store.repository.ack_many(self.store.tenant, items, at)
        return [task.task.id for task in leased]

    async def bury_many(self, count: int, at: datetime, queue: str = "work") -> list[str]:
        """New tasks that are dead at an instant, with an attempt each; returns their ids."""
        leased = await self._lease_many(count, at, queue)
        await self.store.repository.fail_many(self.store.tenant, [fail_item(task) for task in leased], at)
        return [task.task.id for task in leased]

    async def _lease_many(self, count: int, at: datetime, queue: str) -> list[Any]:
        tasks = [new_task(queue=queue, payload=json_payload(f'"{number} 🐝"')) for number in range(count)]
        await self.store.enqueue_many(*tasks, now=at)
        return list((await self.store.reserve(at, limit=count, queues=[queue])).tasks)

    async def rows(self, table: Table) -> Rows:
        """What the database has."""
        return await self._select(table, table.relation)

    async def kept(self, table: Table) -> Rows:
        """What the database was ever given."""
        return await self._select(table, f"kept_{table.name}")

    async def run(self, sql: str) -> None:
        async with self.dialect.connect(write=True) as connection:
            await connection.execute(text(sql))
            await connection.commit()

    async def _select(self, table: Table, relation: str) -> Rows:
        names = ", ".join(column.name for column in table.columns)
        async with self.dialect.connect(write=False) as connection:
            result = await connection.execute(text(f"SELECT {names} FROM {relation}"))
            return Counter(_normalised(table, tuple(row)) for row in result)


async def open_ledger(url: str) -> Ledger:
    """A new one."""
    dialect = connect_dialect(url)
    await migrate(dialect)
    ledger = reopen_ledger(url, dialect)
    for table in ARCHIVED:
        names = [column.name for column in table.columns]
        await ledger.run(
            f"CREATE TABLE kept_{table.name} AS SELECT {', '.join(names)} FROM {table.relation} WHERE 1 = 0"
        )
        values = ", ".join(f"NEW.{name}" for name in names)
        for trigger in TRIGGERS[dialect.name]:
            await ledger.run(
                trigger.format(name=table.name, relation=table.relation, columns=", ".join(names), values=values)
            )
    return ledger


def reopen_ledger(url: str, dialect: Dialect) -> Ledger:
    """One that is there."""
    return Ledger(url, dialect, Store(open_repository(dialect, timeout_seconds=30), "tenant"))


def lake_rows(spark: SparkSession, lake_url: str, table: Table) -> Rows:
    """What a lake has."""
    rows = open_lake(spark, lake_url).read(table).toArrow().to_pylist()
    return Counter(tuple(row[column.name] for column in table.columns) for row in rows)


async def check_nothing_lost(spark: SparkSession, ledger: Ledger, lake_url: str) -> None:
    """Every row that the database was ever given is either there or in the lake, once, and as it was."""
    for table in ARCHIVED:
        here, there, given = await ledger.rows(table), lake_rows(spark, lake_url, table), await ledger.kept(table)
        found = here + there
        lost, doubled = sum((given - found).values()), sum((found - given).values())
        assert (lost, doubled) == (0, 0), f"{ledger.dialect.name} {table.name}: {lost} lost, {doubled} doubled"


async def write_on(ledger: Ledger, at: datetime, stopped: asyncio.Event) -> None:
    """Finishes tasks until it is told to stop: some now, some at an instant long ago, some in slow transactions."""
    while not stopped.is_set():
        await ledger.finish_many(2, at)
        await ledger.finish_many(2, datetime.now(UTC))
        await _insert_slowly(ledger, at)
        await asyncio.sleep(0.5)


async def _insert_slowly(ledger: Ledger, at: datetime) -> None:
    """An attempt with an id that others overtake before it is committed."""
    async with ledger.dialect.connect(write=True) as connection:
        sql = text(
            "INSERT INTO mq_task_attempts"
            " (tenant_id, task_id, queue, type, attempt_no, started_at, finished_at, success)"
            " VALUES ('tenant', 'gone', 'work', '', 1, :at, :at, true)"
        )
        await connection.execute(sql, {"at": ledger.dialect.encode(at)})
        await asyncio.sleep(0.1)
        await connection.commit()


def _normalised(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_value(column, value) for column, value in zip(table.columns, row, strict=True))


def _value(column: Column, value: Any) -> Any:
    """A value as Arrow would give it."""
    if value is None:
        return None
    if column.kind is Kind.BOOLEAN:
        return bool(value)
    if column.kind is not Kind.INSTANT:
        return value
    if isinstance(value, int):
        return EPOCH + timedelta(microseconds=value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
