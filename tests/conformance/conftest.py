"""One repository in each dialect for the whole run, and a tenant of its own for each test."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from app.repository.factory import connect_dialect, open_repository
from app.repository.protocol import Repository
from app.repository.schema import migrate
from tests.conformance.steps import TIMEOUT_SECONDS, Store
from tests.conftest import DIALECTS, MakeDatabase


@pytest.fixture(scope="session", params=DIALECTS)
def dialect_name(request: pytest.FixtureRequest) -> str:
    """The database that the test runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_url(dialect_name: str, make_database: MakeDatabase) -> str:
    """The URL of the database that `repository` is open on."""
    return make_database(dialect_name)


@pytest.fixture(scope="session")
async def repository(shared_url: str) -> AsyncIterator[Repository]:
    """A repository on a migrated database; tests keep apart by their tenants."""
    dialect = connect_dialect(shared_url)
    await migrate(dialect)
    repository = open_repository(dialect, timeout_seconds=TIMEOUT_SECONDS)
    yield repository
    await repository.close()


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
