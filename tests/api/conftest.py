"""The service on each dialect for the whole run, and a tenant of its own for each test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.conftest import DIALECTS, MakeDatabase
from tests.service import Service

# Before they are imported, so that their assertions tell what they compared.
pytest.register_assert_rewrite("tests.api.caller", "tests.api.checking")

from tests.api.caller import Caller, connect, new_tenant  # noqa: E402

StartService = Callable[..., Service]


def end(service: Service) -> None:
    """Ends a service in good order, so that it ends its own processes too, or else by force."""
    try:
        service.terminate()
    finally:
        service.close()


@pytest.fixture(scope="session", params=DIALECTS)
def server(
    request: pytest.FixtureRequest, make_database: MakeDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A running service; tests keep apart by their tenants."""
    service = Service(make_database(request.param), tmp_path_factory.mktemp("service") / f"{request.param}.log")
    try:
        service.start()
        yield service
    finally:
        end(service)


@pytest.fixture
def client(server: Service) -> Iterator[httpx.Client]:
    """A client with a tenant of its own; every reply to it is held to the described ones."""
    with connect(server, new_tenant()) as client:
        yield client


@pytest.fixture
def api(client: httpx.Client) -> Caller:
    """The calls of the client's tenant."""
    return Caller(client)


@pytest.fixture
def other_api(server: Service) -> Iterator[Caller]:
    """The calls of another tenant."""
    with connect(server, new_tenant()) as client:
        yield Caller(client)


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[StartService]:
    """Start a service of the test's own; it ends with the test."""
    with ExitStack() as stack:

        def start(database_url: str, *arguments: str, wait: bool = True, **environment: str) -> Service:
            service = Service(database_url, tmp_path / "leasemq.log", environment=environment, arguments=arguments)
            stack.callback(end, service)
            service.start(wait=wait)
            return service

        yield start


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path}/leasemq.db"
