"""The migrations, on every database: there and back, twice, half-way, several at once; and what they forbid."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Connection, event, inspect, text
from sqlalchemy.exc import DBAPIError

from app.domain.errors import Unavailable
from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect, open_repository
from app.repository.schema import SchemaMismatch, check_schema, head_revision, migrate
from tests.conformance.steps import Store

TABLES = {"mq_tasks", "mq_task_history", "mq_task_dlq", "mq_task_attempts"}
CONCURRENT_PROCESSES = 4


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture
async def dialect(database_url: str) -> AsyncIterator[Dialect]:
    """An empty database."""
    dialect = connect_dialect(database_url)
    yield dialect
    await dialect.close()


@pytest.fixture
async def migrated(dialect: Dialect) -> Dialect:
    await migrate(dialect)
    return dialect


async def execute(dialect: Dialect, statement: str) -> None:
    async with dialect.connect(write=True) as connection:
        await connection.execute(text(statement))
        await connection.commit()


async def tables(dialect: Dialect) -> set[str]:
    async with dialect.connect(write=False) as connection:
        return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))


async def shape(dialect: Dialect) -> dict[str, object]:
    """Every table with its columns, indexes and constraints."""
    async with dialect.connect(write=False) as connection:
        return await connection.run_sync(_shape)


def _shape(connection: Connection) -> dict[str, object]:
    inspector = inspect(connection)
    return {
        table: (
            [(column["name"], str(column["type"]), column["nullable"]) for column in inspector.get_columns(table)],
            sorted((str(index["name"]), str(index["column_names"])) for index in inspector.get_indexes(table)),
            sorted(str(check["name"]) for check in inspector.get_check_constraints(table)),
        )
        for table in sorted(inspector.get_table_names())
    }


async def test_upgrade_makes_the_tables(dialect: Dialect) -> None:
    await migrate(dialect)
    assert await tables(dialect) >= TABLES
    await check_schema(dialect)


async def test_downgrade_takes_everything_away_and_upgrade_brings_it_back(migrated: Dialect) -> None:
    before = await shape(migrated)
    await migrate(migrated, "base")
    assert await tables(migrated) <= {"alembic_version"}
    await migrate(migrated)
    assert await shape(migrated) == before


async def test_second_upgrade_changes_nothing(migrated: Dialect) -> None:
    before = await shape(migrated)
    store = Store(open_repository(migrated, timeout_seconds=10), "tenant")
    await store.enqueue("a")
    await migrate(migrated)
    assert await shape(migrated) == before
    assert (await store.get("a")).id == "a"


async def test_tasks_that_are_there_come_along_one_revision_back_and_again(migrated: Dialect) -> None:
    store = Store(open_repository(migrated, timeout_seconds=10), "tenant")
    await store.finish("done")
    await store.enqueue("ready", type="mail")
    await store.enqueue("other")
    for revision in ("0008", "0007", "head"):
        await migrate(migrated, revision)
    assert (await store.get("done")).id == "done"
    assert await store.reserve_ids(types=["mail"]) == ["ready"]
    assert await store.reserve_ids() == ["other"]


async def test_empty_database_must_be_migrated(dialect: Dialect) -> None:
    with pytest.raises(SchemaMismatch, match=f"revision nothing.*needs {head_revision()}: run `leasemq migrate`"):
        await check_schema(dialect)


async def test_database_that_is_behind_must_be_migrated(migrated: Dialect) -> None:
    await migrate(migrated, "base")
    with pytest.raises(SchemaMismatch, match="run `leasemq migrate`"):
        await check_schema(migrated)


async def test_repository_refuses_a_database_that_is_behind(dialect: Dialect) -> None:
    with pytest.raises(Unavailable, match="run `leasemq migrate`"):
        await open_repository(dialect, timeout_seconds=10).check()


async def test_revision_of_a_newer_version_is_refused(migrated: Dialect) -> None:
    await execute(migrated, "UPDATE alembic_version SET version_num = '9999'")
    before = await shape(migrated)
    with pytest.raises(SchemaMismatch, match=r"9999.*newer"):
        await check_schema(migrated)
    with pytest.raises(SchemaMismatch, match=r"9999.*newer"):
        await migrate(migrated)
    assert await shape(migrated) == before


async def test_migration_that_was_killed_half_way_can_be_run_again(dialect: Dialect, database_url: str) -> None:
    """What a database commits by itself, statement by statement, must not stand in the way of the next try."""
    await migrate(dialect)
    whole = await shape(dialect)
    await migrate(dialect, "base")
    for statements in range(10):
        await kill_migration(database_url, statements)
        await migrate(dialect)
        assert await shape(dialect) == whole
        await migrate(dialect, "base")


async def kill_migration(database_url: str, statements: int) -> None:
    """Let a migration make that many changes to the schema before it is killed."""
    dialect = connect_dialect(database_url)
    left = statements

    def kill(connection: object, cursor: object, statement: str, *others: object) -> None:
        nonlocal left
        if statement.lstrip().startswith("CREATE") and "alembic_version" not in statement:
            left -= 1
            if left < 0:
                raise Killed

    event.listen(dialect.engine.sync_engine, "before_cursor_execute", kill)
    with pytest.raises(Killed):
        await migrate(dialect)
    await dialect.close()


async def test_several_processes_may_migrate_an_empty_database_at_once(dialect: Dialect, database_url: str) -> None:
    processes = await asyncio.gather(*(start_migration(database_url) for _ in range(CONCURRENT_PROCESSES)))
    outcomes = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    assert [process.returncode for process in processes] == [0] * CONCURRENT_PROCESSES, outcomes
    await check_schema(dialect)


async def start_migration(database_url: str) -> Process:
    """A process that stands at the start and waits for the word."""
    command = [sys.executable, "-m", "tests.migrations.concurrent_migration", database_url]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


READY, LEASED, DONE = "WHERE id = 'ready'", "WHERE id = 'leased'", "WHERE tombstone_id = 'done'"
FORBIDDEN = [
    ("ck_mq_tasks_leased_has_lease", f"status = 'leased' {READY}"),
    ("ck_mq_tasks_leased_has_lease", f"status = 'ready' {LEASED}"),
    ("ck_mq_tasks_lease_is_whole", f"lease_token_hash = NULL {LEASED}"),
    ("ck_mq_tasks_lease_is_whole", f"lease_owner = NULL {LEASED}"),
    ("ck_mq_tasks_lease_is_whole", f"leased_at = NULL {LEASED}"),
    ("ck_mq_tasks_lease_is_whole", f"lease_owner = 'worker' {READY}"),
    ("ck_mq_tasks_lease_is_whole", f"lease_token_hash = 'hash' {READY}"),
    ("ck_mq_tasks_attempts", f"attempts = -1 {READY}"),
    ("ck_mq_tasks_attempts", f"max_attempts = -1 {READY}"),
    ("ck_mq_tasks_status", f"status = 'dead' {READY}"),
    ("ck_mq_tasks_status", f"status = 'Ready' {READY}"),
    ("ck_mq_tasks_tombstone_has_no_id", f"id = NULL {READY}"),
    ("ck_mq_tasks_tombstone_has_no_id", f"id = 'done' {DONE}"),
    ("ck_mq_tasks_tombstone_has_no_id", f"dedupe_until = NULL {DONE}"),
    ("ck_mq_tasks_tombstone_has_no_id", f"status = 'ready' {DONE}"),
    ("ck_mq_tasks_last_token", f"last_token_hash = 'hash' {READY}"),
    ("ck_mq_tasks_last_token", f"last_token_fate = 'lost' {READY}"),
]


async def test_constraints_refuse_what_must_not_be(migrated: Dialect) -> None:
    store = Store(open_repository(migrated, timeout_seconds=10), "tenant")
    await store.finish("done", dedupe_key="key", dedupe_seconds=60)
    await store.lease("leased")
    await store.enqueue("ready")
    for constraint, change in FORBIDDEN:
        with pytest.raises(DBAPIError, match=constraint):
            await execute(migrated, f"UPDATE mq_tasks SET {change}")
    with pytest.raises(DBAPIError, match="ck_mq_task_history_status"):
        await execute(migrated, "UPDATE mq_task_history SET status = 'dead'")


@pytest.mark.parametrize("change", ["id = 'b'", "dedupe_key = 'key-b'"])
async def test_ids_and_keys_are_unique(migrated: Dialect, change: str) -> None:
    store = Store(open_repository(migrated, timeout_seconds=10), "tenant")
    await store.enqueue("a", dedupe_key="key-a")
    await store.enqueue("b", dedupe_key="key-b")
    with pytest.raises(DBAPIError, match=r"(?i)unique|duplicate"):
        await execute(migrated, f"UPDATE mq_tasks SET {change} WHERE id = 'a'")
