"""Databases for the tests: real servers, started when the first test needs them, and fresh databases in them."""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.servers import Server, Unavailable, start_mysql, start_postgresql

DIALECTS = ("postgresql", "mysql", "sqlite")
DIALECT_IN_TEST_ID = re.compile(rf"[\[-]({'|'.join(DIALECTS)})[\]-]")

# Its tests share a Spark session, of which there is one.
TOGETHER = "tests/pipeline/"

GetServer = Callable[[str], Server]
MakeDatabase = Callable[[str], str]


@pytest.fixture(scope="session")
def get_server() -> Iterator[GetServer]:
    """Give the server of a dialect, started at the first call, for the whole run."""
    with ExitStack() as stack:
        started = cache(lambda dialect: _start(dialect, stack))
        yield lambda dialect: _server_or_skip(dialect, started(dialect))


@pytest.fixture(scope="session")
def postgresql_server(get_server: GetServer) -> Server:
    """A PostgreSQL server for the whole run."""
    return get_server("postgresql")


@pytest.fixture(scope="session")
def mysql_server(get_server: GetServer) -> Server:
    """A MySQL server for the whole run; without one the test is skipped, or fails where MySQL is required."""
    return get_server("mysql")


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the module's own, to kill, pause and start again."""
    with ExitStack() as stack:
        server = _server_or_skip(request.param, _start(request.param, stack))
        if not server.controllable:
            pytest.skip(f"the {server.name} server is not ours to control")
        yield server


@pytest.fixture(scope="session")
def make_database(get_server: GetServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeDatabase]:
    """Make an empty database in a dialect and return its URL; it lasts to the end of the run."""
    with ExitStack() as stack:
        directory = tmp_path_factory.mktemp("sqlite")
        yield lambda dialect: stack.enter_context(_database(dialect, get_server, directory))


@pytest.fixture(params=DIALECTS)
def database_url(request: pytest.FixtureRequest, get_server: GetServer, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of the test's own, in each dialect."""
    with _database(request.param, get_server, tmp_path) as url:
        yield url


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Deals tests out one by one, but those that belong together to one process, first of all."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER if nodeid.startswith(TOGETHER) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell why tests were skipped, a line a reason, and how the conformance tests ended in each dialect."""
    skips = Counter(report.longrepr[2] for report in terminalreporter.getreports("skipped"))
    for reason, count in skips.items():
        terminalreporter.write_line(f"{count} tests: {reason}")
    outcomes = _conformance_outcomes(terminalreporter)
    if any(outcomes.values()):
        told = (f"{dialect} {_told(counts)}" for dialect, counts in outcomes.items())
        terminalreporter.write_line(f"conformance: {' · '.join(told)}")


def _conformance_outcomes(terminalreporter: pytest.TerminalReporter) -> dict[str, Counter[str]]:
    """Count the conformance tests by dialect and outcome; a dialect that was left out counts nothing."""
    counts: dict[str, Counter[str]] = {dialect: Counter() for dialect in DIALECTS}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            dialect = DIALECT_IN_TEST_ID.search(report.nodeid)
            if dialect and report.nodeid.startswith("tests/conformance/"):
                counts[dialect[1]][outcome] += 1
    return counts


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "not run"


def _start(dialect: str, stack: ExitStack) -> Server | Unavailable:
    """Start the server of a dialect, to end with the stack."""
    start = {"postgresql": start_postgresql, "mysql": start_mysql}[dialect]
    # Not pytest's own directories: they are closed to the user that the servers run as.
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-"))
    server = start(Path(directory))
    if isinstance(server, Server):
        stack.callback(server.close)
    return server


def _server_or_skip(dialect: str, server: Server | Unavailable) -> Server:
    if isinstance(server, Server):
        return server
    required = os.environ.get("MQ_TEST_REQUIRE", "").split(",")
    if dialect in required or os.environ.get("CI") == "true":
        pytest.fail(server.reason, pytrace=False)
    pytest.skip(server.reason)


@contextmanager
def _database(dialect: str, get_server: GetServer, directory: Path) -> Iterator[str]:
    """Make an empty database and drop it at the end."""
    name = f"test_{uuid4().hex}"
    if dialect == "sqlite":
        yield f"sqlite:///{directory / name}.db"
        return
    server = get_server(dialect)
    yield server.create_database(name)
    server.drop_database(name)
