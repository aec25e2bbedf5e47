"""One database in each dialect for the whole run, and a tenant of its own for each test."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.repository.dialect import Dialect
from app.repository.factory import Repositories, connect_dialect, open_repositories
from app.repository.protocol import Repository
from app.repository.schema import migrate
from tests.conformance.steps import TIMEOUT_SECONDS, Store
from tests.conformance.topology_steps import Emptied, Topology
from tests.conftest import DIALECTS, MakeDatabase

TABLES = (
    "mq_tasks",
    "mq_task_history",
    "mq_task_dlq",
    "mq_task_attempts",
    "mq_operations",
    "mq_queue_graves",
    "mq_queues",
    "mq_topics",
)


@pytest.fixture(scope="session", params=DIALECTS)
def dialect_name(request: pytest.FixtureRequest) -> str:
    """The database that the test runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_url(dialect_name: str, make_database: MakeDatabase) -> str:
    """The URL of the database that `repository` is open on."""
    return make_database(dialect_name)


@pytest.fixture(scope="session")
async def shared_dialect(shared_url: str) -> AsyncIterator[Dialect]:
    """The migrated database that `repository` is open on."""
    dialect = connect_dialect(shared_url)
    await migrate(dialect)
    yield dialect
    await dialect.close()


@pytest.fixture(scope="session")
async def repositories(shared_dialect: Dialect) -> Repositories:
    """All repositories on one database; tests keep apart by their tenants, and no janitor runs."""
    return open_repositories(shared_dialect, timeout_seconds=TIMEOUT_SECONDS)


@pytest.fixture(scope="session")
async def repository(repositories: Repositories) -> Repository:
    """The tasks on that database."""
    return repositories.tasks


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test knows."""
    return f"tenant-{uuid4().hex}"


@pytest.fixture
def store(repository: Repository, tenant: str) -> Store:
    """The repository as the test's tenant sees it."""
    return Store(repository, tenant)


@pytest.fixture
def other_store(repository: Repository) -> Store:
    """The repository as another tenant sees it."""
    return Store(repository, f"other-{uuid4().hex}")


@pytest.fixture
def topology(repositories: Repositories, tenant: str) -> Topology:
    """Queues and topics as the test's tenant sees them."""
    return Topology(repositories.topology, tenant)


@pytest.fixture
def other_topology(repositories: Repositories, other_store: Store) -> Topology:
    """Queues and topics as the other tenant sees them."""
    return Topology(repositories.topology, other_store.tenant)


@pytest.fixture(scope="session")
async def janitor_dialect(dialect_name: str, make_database: MakeDatabase) -> AsyncIterator[Dialect]:
    """A database for what is done to all tenants at once."""
    dialect = connect_dialect(make_database(dialect_name))
    await migrate(dialect)
    yield dialect
    await dialect.close()


@pytest.fixture
async def emptied(janitor_dialect: Dialect, tenant: str) -> Emptied:
    """A database in which nothing is but what the test puts there."""
    async with janitor_dialect.connect(write=True) as connection:
        for table in TABLES:
            await connection.execute(text(f"DELETE FROM {table}"))
        await connection.commit()
    return Emptied(janitor_dialect, tenant)
