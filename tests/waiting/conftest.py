"""Two replicas on one database of each dialect for the whole run, and a tenant of its own for each test."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.caller import new_tenant
from tests.conftest import DIALECTS, MakeDatabase
from tests.service import Service
from tests.waiting.replica import SELDOM, Replica, replica_at

StartReplica = Callable[..., Service]


@pytest.fixture(scope="session", params=DIALECTS)
def dialect_name(request: pytest.FixtureRequest) -> str:
    """The database that the test runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def services(
    dialect_name: str, make_database: MakeDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[Service]]:
    """Two replicas that poll so seldom that it cannot be what wakes anybody; where nothing but the poll
    brings word from another replica, the second one polls as it does by default, and leaves work in the
    background to the first.
    """
    url, logs = make_database(dialect_name), tmp_path_factory.mktemp("waiting")
    with ExitStack() as stack:
        services = []
        for number, environment in enumerate(
            [SELDOM, SELDOM if dialect_name == "postgresql" else {"MQ_JANITOR": "false"}]
        ):
            service = Service(url, logs / f"{number}.log", environment=environment)
            stack.callback(service.close)
            service.start()
            services.append(service)
        yield services


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test knows."""
    return new_tenant()


@pytest.fixture
async def here(services: Sequence[Service], tenant: str) -> AsyncIterator[Replica]:
    """The replica that polls seldom."""
    async with replica_at(services[0].url, tenant) as replica:
        yield replica


@pytest.fixture
async def there(services: Sequence[Service], tenant: str) -> AsyncIterator[Replica]:
    """The other replica."""
    async with replica_at(services[1].url, tenant) as replica:
        yield replica


@pytest.fixture
def start_replica(tmp_path: Path) -> Iterator[StartReplica]:
    """Start a replica of the test's own; it ends with the test."""
    with ExitStack() as stack:

        def start(database_url: str, *arguments: str, **environment: str) -> Service:
            service = Service(database_url, tmp_path / "leasemq.log", environment=environment, arguments=arguments)
            stack.callback(service.close)
            service.start()
            return service

        yield start
