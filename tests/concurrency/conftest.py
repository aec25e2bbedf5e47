"""Two replicas and two racing processes on one database of each dialect, and a tenant of its own for each test."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from uuid import uuid4

import pytest

from app.repository.factory import connect_dialect, connect_engine, open_repository
from app.repository.protocol import Repository
from tests.concurrency.fleet import Fleet, fleet_of
from tests.concurrency.racing import TIMEOUT_SECONDS, Racers
from tests.concurrency.tables import Tables
from tests.conftest import DIALECTS, MakeDatabase
from tests.service import Service

QUIET = {"MQ_LOG_LEVEL": "warning"}


@pytest.fixture(scope="session", params=DIALECTS)
def dialect_name(request: pytest.FixtureRequest) -> str:
    """The database that the test runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_url(dialect_name: str, make_database: MakeDatabase) -> str:
    """The URL of the database that the replicas serve."""
    return make_database(dialect_name)


@pytest.fixture(scope="session")
def replicas(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Service]]:
    """Two replicas; tests keep apart by their tenants."""
    logs = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        services = [Service(shared_url, logs / f"{number}.log", environment=QUIET) for number in range(2)]
        for service in services:
            stack.callback(service.close)
            service.start()
        yield services


@pytest.fixture(scope="session")
def racers(shared_url: str, replicas: Sequence[Service]) -> Iterator[Racers]:
    """Two processes that race on the repository itself; the replicas have made the schema."""
    racers = Racers(shared_url)
    yield racers
    racers.close()


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test knows."""
    return f"tenant-{uuid4().hex}"


@pytest.fixture
async def fleet(replicas: Sequence[Service], tenant: str) -> AsyncIterator[Fleet]:
    """The test's tenant at both replicas."""
    async with fleet_of([service.url for service in replicas], tenant) as fleet:
        yield fleet


@pytest.fixture
async def repository(shared_url: str, replicas: Sequence[Service]) -> AsyncIterator[Repository]:
    """A repository in the test's own process, to prepare what others race for."""
    repository = open_repository(connect_dialect(shared_url), timeout_seconds=TIMEOUT_SECONDS)
    yield repository
    await repository.close()


@pytest.fixture
async def tables(shared_url: str, tenant: str) -> AsyncIterator[Tables]:
    """The test's tenant in the database itself."""
    engine = connect_engine(shared_url)
    yield Tables(engine, tenant)
    await engine.dispose()
