"""The look at the database's health: what is well, what is not, and what to do about it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import inspect, text

from app.domain.doctor import Check, Finding, Severity
from app.repository import doctoring
from app.repository.connection import Row
from app.repository.dialect import Dialect
from app.repository.doctoring import INDEXES
from app.repository.factory import connect_dialect, open_repository
from app.repository.protocol import Repository
from app.repository.schema import migrate
from app.repository.session import Session
from tests.conformance.steps import TIMEOUT_SECONDS
from tests.conftest import MakeDatabase

CROWDED = [
    {"place": "mq_tasks", "live": 20_000, "dead": 20_001},
    {"place": "mq_queues", "live": 0, "dead": 9_000},
]
TABLES = ("mq_queues", "mq_queue_graves", "mq_tasks", "mq_task_history", "mq_task_dlq", "mq_task_attempts")


@pytest.fixture
async def patient(dialect_name: str, make_database: MakeDatabase) -> AsyncIterator[Dialect]:
    """A database of the test's own."""
    dialect = connect_dialect(make_database(dialect_name))
    await migrate(dialect)
    yield dialect
    await dialect.close()


@pytest.fixture
def examined(patient: Dialect) -> Repository:
    return open_repository(patient, timeout_seconds=TIMEOUT_SECONDS)


async def found(repository: Repository, check: Check, now: datetime | None = None) -> Finding:
    [finding] = [finding for finding in (await repository.diagnose(now)).findings if finding.check is check]
    return finding


async def execute(dialect: Dialect, statement: str) -> None:
    async with dialect.connect(write=True) as connection:
        await connection.execute(text(statement))
        await connection.commit()


async def test_everything_is_looked_at_and_a_new_database_is_well(patient: Dialect, examined: Repository) -> None:
    diagnosis = await examined.diagnose()
    assert diagnosis.database == patient.name
    assert [finding.check for finding in diagnosis.findings] == list(Check)
    assert {finding.severity for finding in diagnosis.findings} <= {Severity.OK, Severity.UNKNOWN}
    assert diagnosis.severity is Severity.OK
    assert abs(diagnosis.server_time - datetime.now(UTC)) < timedelta(minutes=1)


async def test_indexes_that_are_asked_for_are_those_of_the_migrations(patient: Dialect) -> None:
    async with patient.connect(write=False) as connection:
        made = await connection.run_sync(
            lambda sync: {index["name"] for table in TABLES for index in inspect(sync).get_indexes(table)}
        )
    assert made == INDEXES - patient.merged_indexes


async def test_missing_index(patient: Dialect, examined: Repository) -> None:
    on = " ON mq_tasks" if patient.name == "mysql" else ""
    await execute(patient, f"DROP INDEX ix_mq_tasks_ready{on}")
    finding = await found(examined, Check.MISSING_INDEXES)
    assert finding.severity is Severity.WARNING
    assert finding.facts == {"indexes": ["ix_mq_tasks_ready"]}
    assert finding.advice
    assert (await examined.diagnose()).severity is Severity.WARNING


async def test_unused_index(patient: Dialect, examined: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctoring, "LARGE_INDEX_BYTES", 0)
    await execute(patient, "CREATE INDEX ix_somebodys_own ON mq_tasks (priority)")
    finding = await found(examined, Check.UNUSED_INDEXES)
    if patient.name == "sqlite":
        assert finding.severity is Severity.UNKNOWN
        return
    assert finding.severity is Severity.NOTICE
    assert "ix_somebodys_own" in finding.facts["indexes"]
    assert "ix_somebodys_own" in (finding.advice or "")


async def test_schema_of_another_version(patient: Dialect, examined: Repository) -> None:
    await execute(patient, "UPDATE alembic_version SET version_num = '0001'")
    finding = await found(examined, Check.SCHEMA_VERSION)
    assert finding.severity is Severity.WARNING
    assert "leasemq migrate" in (finding.advice or "")


async def test_transaction_that_stays_open(
    patient: Dialect, examined: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctoring, "LONG_TRANSACTION_SECONDS", 0.5)
    async with patient.connect(write=False) as connection:
        await connection.execute(text("SELECT count(*) FROM mq_tasks"))
        await asyncio.sleep(1.1)
        finding = await found(examined, Check.OLDEST_TRANSACTION)
    if patient.name == "sqlite":
        assert finding.severity is Severity.UNKNOWN
        return
    assert finding.severity is Severity.WARNING
    assert finding.facts["seconds"] >= 1


async def test_dead_rows_are_counted(examined: Repository) -> None:
    finding = await found(examined, Check.DEAD_ROWS)
    assert finding.severity is Severity.OK
    assert all(rows["dead"] >= 0 for rows in finding.facts.values())
    assert finding.facts


async def test_dead_rows_that_are_too_many(examined: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Session.rows

    async def crowded(session: Session, statement: str, **parameters: object) -> Sequence[Row]:
        return CROWDED if statement == "count_dead_rows" else await rows(session, statement, **parameters)

    monkeypatch.setattr(Session, "rows", crowded)
    finding = await found(examined, Check.DEAD_ROWS)
    assert (finding.severity, "mq_tasks" in finding.detail) == (Severity.WARNING, True)
    assert "mq_queues" not in finding.detail
    assert finding.advice


async def test_clock_that_is_wrong(examined: Repository) -> None:
    assert (await found(examined, Check.CLOCK)).severity is Severity.OK
    finding = await found(examined, Check.CLOCK, datetime.now(UTC) + timedelta(minutes=5))
    assert finding.severity is Severity.NOTICE
    assert 299 < finding.facts["seconds_apart"] < 301


async def test_what_one_may_not_look_at_hides_nothing_else(
    patient: Dialect, examined: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_for_the_impossible(session: Session) -> Finding:
        await session.rows("get_operation", tenant_id="", id="")
        raise AssertionError("there is no such table any more")

    await execute(patient, "DROP TABLE mq_operations")
    monkeypatch.setattr(doctoring, "_missing_indexes", ask_for_the_impossible)
    severities = {finding.check: finding.severity for finding in (await examined.diagnose()).findings}
    assert severities[Check.MISSING_INDEXES] is Severity.UNKNOWN
    assert severities[Check.CLOCK] is Severity.OK
