"""What one transaction runs is kept whole or not at all, also where a database hears of it only at the commit."""

from datetime import datetime

import pytest
from sqlalchemy.exc import IntegrityError

from app.domain.errors import Unavailable
from app.domain.task import AttemptLog
from app.domain.transitions import EndedAttempt
from app.repository import session as sessions
from app.repository.dialect import Dialect
from app.repository.session import Database, Session
from tests.conformance.steps import TIMEOUT_SECONDS

TRIES = 3
# A name that is taken is a race that others may win, or, where there is one writer, a mistake.
FAILURES = (Unavailable, IntegrityError)


@pytest.fixture
def database(shared_dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Transactions that are tried a few times only."""
    monkeypatch.setattr(sessions, "MAX_TRIES", TRIES)
    return Database(
        shared_dialect, timeout_seconds=TIMEOUT_SECONDS, attempt_log=AttemptLog.ALL, on_attempts_lost=lambda lost: None
    )


async def topics(database: Database, tenant: str) -> list[str]:
    async def names(session: Session) -> list[str]:
        rows = await session.rows("list_topics", tenant_id=tenant, after_name="", limit=10)
        return [row["name"] for row in rows]

    return await database.read(names)


def ended_attempt(at: datetime) -> EndedAttempt:
    return EndedAttempt("task", "queue", "", 1, "worker", started_at=at, finished_at=at, success=True, reason=None)


async def insert(session: Session, tenant: str, *names: str) -> None:
    for name in names:
        await session.run("insert_topic", tenant_id=tenant, name=name, now=session.now)


async def test_what_is_run_last_is_there_after_the_commit(database: Database, tenant: str) -> None:
    await database.write(lambda session: insert(session, tenant, "a", "b"))
    assert await topics(database, tenant) == ["a", "b"]


async def test_what_is_run_is_seen_by_what_follows(database: Database, tenant: str) -> None:
    async def insert_and_look(session: Session) -> int:
        await insert(session, tenant, "a")
        return len(await session.rows("list_topics", tenant_id=tenant, after_name="", limit=10))

    assert await database.write(insert_and_look) == 1


async def test_a_statement_that_fails_takes_back_those_around_it(database: Database, tenant: str) -> None:
    with pytest.raises(FAILURES):
        await database.write(lambda session: insert(session, tenant, "a", "twice", "twice", "b"))
    assert await topics(database, tenant) == []


async def test_a_statement_that_fails_once_is_run_again(database: Database, tenant: str) -> None:
    if database.dialect.writers == 1:
        pytest.skip("one writer: nobody takes a name meanwhile")
    runs: list[list[str]] = [["a", "b"], ["a", "twice", "twice"]]
    await database.write(lambda session: insert(session, tenant, *runs.pop()))
    assert await topics(database, tenant) == ["a", "b"]


async def test_a_failure_is_not_taken_for_one_of_the_attempt_log(database: Database, tenant: str) -> None:
    async def insert_and_log(session: Session) -> None:
        await insert(session, tenant, "twice", "twice")
        await session.log_attempts(tenant, [ended_attempt(session.now)])

    with pytest.raises(FAILURES):
        await database.write(insert_and_log)
    assert database.logs(success=True)


async def test_what_is_taken_back_is_not_carried_out(database: Database, tenant: str) -> None:
    await database.rehearse(lambda session: insert(session, tenant, "a"))
    assert await topics(database, tenant) == []
