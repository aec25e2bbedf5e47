"""The settings of queues, read from every kind of database; and what is refused."""

import asyncio
from pathlib import Path

import pytest

from app.domain.backoff import Backoff
from app.domain.queue import QueueSettings
from app.pipeline.advice.findings import QueueKey, QueuePolicy
from app.pipeline.advice.policies import read_policies
from app.pipeline.errors import PipelineError
from app.repository.factory import connect_dialect, open_repositories
from app.repository.schema import migrate

MAIL = QueueSettings(
    lease_seconds=12.5, max_lease_seconds=99.0, max_attempts=0, backoff=Backoff(1.5, 3.0, 60.0, 0.0),
    rate_per_second=2.5, concurrency_limit=7, paused=True,
)  # fmt: skip


async def declare_queues(database_url: str) -> None:
    dialect = connect_dialect(database_url)
    try:
        await migrate(dialect)
        topology = open_repositories(dialect, timeout_seconds=30.0).topology
        await topology.put_queue("default", "mail", MAIL)
        await topology.put_queue("acme", "mail", QueueSettings())
    finally:
        await dialect.close()


def test_policies_are_read_by_tenant_and_queue(database_url: str) -> None:
    asyncio.run(declare_queues(database_url))
    policies = read_policies(database_url)
    assert policies == {
        QueueKey("default", "mail"): QueuePolicy(12.5, 99.0, 0, Backoff(1.5, 3.0, 60.0, 0.0), 2.5, 7, True),
        QueueKey("acme", "mail"): QueuePolicy(),
    }
    assert [policy.is_limited for policy in policies.values()].count(True) == 1
    assert {type(policy.max_attempts) for policy in policies.values()} == {int}


def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no database"):
        read_policies(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_queues_is_refused_without_its_url(database_url: str) -> None:
    dialect = connect_dialect(database_url)
    if dialect.name == "sqlite":
        Path(str(dialect.engine.url.database)).touch()
    with pytest.raises(PipelineError, match="the settings of the queues cannot be read") as refused:
        read_policies(database_url)
    assert "://" not in str(refused.value)


@pytest.mark.parametrize("database_url", ["nonsense", "oracle://user:secret@host/db"])
def test_a_url_that_is_none_is_refused(database_url: str) -> None:
    with pytest.raises(PipelineError) as refused:
        read_policies(database_url)
    assert "secret" not in str(refused.value)
