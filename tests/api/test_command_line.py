"""leasemq serve | migrate: what it refuses to start with, and how it starts and ends."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import text

from app.cli import main
from app.repository.factory import connect_engine
from tests.api.caller import Caller, connect, new_tenant
from tests.api.command import run
from tests.api.conftest import StartService
from tests.api.test_operating import sample, scrape
from tests.conftest import GetServer
from tests.servers.ports import LOOPBACK, free_port
from tests.service import Service

PASSWORD = "s3cret-word"

Refusal = Callable[..., str]


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """Run a command that must refuse, within this process for speed, and return the line with which it does."""

    def refuse(*arguments: str, **variables: str) -> str:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with ThreadPoolExecutor(max_workers=1) as pool:
            # In a thread of its own, since this one's event loop is the test run's.
            assert pool.submit(main, arguments).result() == 2
        [line] = capsys.readouterr().err.splitlines()
        return str(line)

    def serve(*_: object, **__: object) -> None:
        raise AssertionError("the service starts, but must not")

    monkeypatch.setattr("uvicorn.run", serve)
    # The logs of this process are the test run's.
    monkeypatch.setattr("app.cli.configure_logs", lambda *_, **__: None)
    for name in [name for name in os.environ if name.startswith("MQ_") and not name.startswith("MQ_TEST_")]:
        monkeypatch.delenv(name)
    return refuse


def test_open_bind_is_refused(tmp_path: Path) -> None:
    database = tmp_path / "leasemq.db"
    done = run("serve", "--host", "0.0.0.0", "--port", str(free_port()), "--database-url", f"sqlite:///{database}")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "0.0.0.0" in line
    assert "MQ_INSECURE" in line
    assert not database.exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "queue.example.com"])
def test_every_open_bind_is_refused(host: str, refusal: Refusal, sqlite_url: str) -> None:
    told = refusal("serve", MQ_HOST=host, MQ_DATABASE_URL=sqlite_url)
    assert host in told
    assert "MQ_INSECURE" in told


BAD_URLS = {
    "garbage": f"garbage {PASSWORD}",
    "unknown-kind": f"oracle://user:{PASSWORD}@127.0.0.1/leasemq",
    "bad-port": f"postgresql://user:{PASSWORD}@127.0.0.1:port/leasemq",
    "sqlite-in-memory": "sqlite:///:memory:",
    "sqlite-no-file": "sqlite://",
}


@pytest.mark.parametrize("url", BAD_URLS.values(), ids=BAD_URLS)
@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_bad_database_url(command: str, url: str, refusal: Refusal) -> None:
    told = refusal(command, MQ_DATABASE_URL=url)
    assert told.startswith("leasemq: MQ_DATABASE_URL: ")
    assert PASSWORD not in told


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_database_that_does_not_answer(kind: str, refusal: Refusal) -> None:
    url = f"{kind}://user:{PASSWORD}@{LOOPBACK}:{free_port()}/leasemq"
    told = refusal("serve", MQ_DATABASE_URL=url, MQ_START_WAIT_SECONDS="0.1")
    assert told.startswith("leasemq: The database does not answer")
    assert PASSWORD not in told


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_database_that_is_not_there(kind: str, refusal: Refusal, get_server: GetServer) -> None:
    server = get_server(kind)
    url = server.create_database("for_a_moment")
    server.drop_database("for_a_moment")
    assert "for_a_moment" in refusal("serve", MQ_DATABASE_URL=url, MQ_START_WAIT_SECONDS="0.1")


BAD_VARIABLES = [
    ("MQ_PORT", "eighty"), ("MQ_PORT", "70000"), ("MQ_PORT", "-1"), ("MQ_WORKERS", "0"), ("MQ_WORKERS", "1.5"),
    ("MQ_INSECURE", "perhaps"), ("MQ_AUTO_MIGRATE", "2"), ("MQ_LOG_LEVEL", "loud"), ("MQ_LOG_FORMAT", "xml"),
    ("MQ_DATABASE_TIMEOUT_SECONDS", "0"), ("MQ_DATABASE_TIMEOUT_SECONDS", "nan"), ("MQ_START_WAIT_SECONDS", "inf"),
    ("MQ_DATABASE_POOL_SIZE", "0"), ("MQ_ATTEMPT_LOG", "some"), ("MQ_WAIT_POLL_SECONDS", "-1"),
    ("MQ_METRICS_MAX_QUEUES", "-1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_VARIABLES)
def test_bad_variable(name: str, value: str, refusal: Refusal) -> None:
    assert f"{name}: " in refusal("serve", **{name: value})


def test_bad_variables_are_told_together(refusal: Refusal) -> None:
    told = refusal("serve", MQ_PORT="x", MQ_LOG_LEVEL="y")
    assert "MQ_PORT: " in told
    assert "MQ_LOG_LEVEL: " in told


@pytest.mark.parametrize("arguments", [["serve", "--port", "eighty"], ["serve", "--surprise"], ["surprise"], []])
def test_bad_option(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2


async def test_schema_is_made_by_migrate_and_refused_if_newer(database_url: str, refusal: Refusal) -> None:
    empty = refusal("serve", MQ_DATABASE_URL=database_url, MQ_AUTO_MIGRATE="false")
    assert "run `leasemq migrate`" in empty
    assert run("migrate", "--database-url", database_url).returncode == 0
    await _execute(database_url, "UPDATE alembic_version SET version_num = 'future'")
    for automatic in ("true", "false"):
        assert "newer" in refusal("serve", MQ_AUTO_MIGRATE=automatic)
    assert "newer" in refusal("migrate")


def test_serves_what_was_migrated_and_ends_when_told_to(start_service: StartService, sqlite_url: str) -> None:
    assert run("migrate", MQ_DATABASE_URL=sqlite_url).returncode == 0
    service = start_service(sqlite_url, MQ_AUTO_MIGRATE="false")
    with connect(service, new_tenant()) as client:
        Caller(client).enqueue()
        # The client's connection is still open.
        _check_end(service)


def test_what_was_accepted_outlives_the_process(start_service: StartService, sqlite_url: str) -> None:
    service = start_service(sqlite_url)
    with connect(service, "tenant") as client:
        api = Caller(client)
        accepted = [api.enqueue(payload=number)["id"] for number in range(5)]
        lease = api.lease(queue="other", id="leased")
    service.kill()
    service.start()
    with connect(service, "tenant") as client:
        api = Caller(client)
        assert [task["id"] for task in api.reserve(limit=10)] == accepted
        assert api.settle("ack", lease)["status"] == "done"


def test_workers_count_together_and_end_together(start_service: StartService, sqlite_url: str) -> None:
    # A janitor that is suspended in the middle of its work would hold SQLite's only lock.
    service = start_service(sqlite_url, "--workers", "2", MQ_JANITOR="false")
    workers = _workers(service)
    assert len(workers) == 2
    before = _scrape(service)
    for worker in workers:
        with _suspended(worker), connect(service, "tenant") as client:
            Caller(client).enqueue(queue="counted")
            # A call is counted once its reply is sent: the worker must have come so far before it is suspended.
            assert client.get("/healthz").is_success
    requests = sample("mq_http_requests_total", method="POST", route="/v1/tasks", status="201")
    operations = sample("mq_operations_total", operation="enqueue", queue="counted", outcome="ok")
    for worker in workers:
        with _suspended(worker):
            after = _scrape(service)
        assert (after[requests] - before.get(requests, 0), after[operations]) == (2, 2)
        assert {name for name, _ in after if not name.startswith("mq_")} == set()
        assert not any("pid" in dict(labels) for _, labels in after)
    _check_end(service)
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []


def _check_end(service: Service) -> None:
    """The service ends in good order, and soon."""
    started = time.monotonic()
    assert service.terminate() in {0, -signal.SIGTERM}
    assert time.monotonic() - started < 10
    assert "Traceback" not in service.log_text()


@contextmanager
def _suspended(worker: psutil.Process) -> Iterator[None]:
    """While one worker cannot answer, the other does."""
    worker.suspend()
    try:
        yield
    finally:
        worker.resume()


def _workers(service: Service) -> list[psutil.Process]:
    """The processes that answer, without the one that watches over what they share."""
    children = psutil.Process(service.pid).children()
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


def _scrape(service: Service) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    with httpx.Client(base_url=service.url, verify=False, timeout=20) as client:
        return scrape(client)


async def _execute(database_url: str, statement: str) -> None:
    engine = connect_engine(database_url)
    async with engine.begin() as connection:
        await connection.execute(text(statement))
    await engine.dispose()
