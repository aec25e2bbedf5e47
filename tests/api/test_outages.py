"""A database that goes away and comes back: 503 meanwhile, and nothing that was accepted is lost."""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.api.caller import Caller, Json, connect, new_tenant
from tests.api.checking import refused
from tests.api.conftest import end
from tests.servers import Server
from tests.service import Service

UNAVAILABLE = (503, "unavailable")
ANSWER_SECONDS = 15
RECOVER_SECONDS = 30


@pytest.fixture(scope="module")
def service(own_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on a server that can be taken down."""
    url = own_server.create_database(f"outages_{uuid4().hex}")
    log = tmp_path_factory.mktemp("outages") / f"{own_server.name}.log"
    service = Service(url, log, environment={"MQ_DATABASE_TIMEOUT_SECONDS": "2"})
    try:
        service.start()
        yield service
    finally:
        end(service)


@pytest.fixture
def api(service: Service) -> Iterator[Caller]:
    with connect(service, new_tenant()) as client:
        client.timeout = httpx.Timeout(ANSWER_SECONDS)
        yield Caller(client)


def fill(api: Caller) -> Json:
    """Tasks in several states; returns the leased one."""
    api.enqueue_many({"id": "ready", "payload": "kept"}, {"id": "scheduled", "delay_seconds": 3600})
    api.die(id="dead", queue="other")
    return api.lease(id="leased", queue="other", lease_seconds=3600)


def requests(lease: Json) -> list[tuple[str, str, Json | None]]:
    """A good request to every route that needs the database."""
    token = {"lease_token": lease["lease_token"]}
    settle: list[tuple[str, Json]] = [
        ("extend", {**token, "lease_seconds": 60}),
        ("ack", token),
        ("nack", token),
        ("release", token),
        ("fail", {**token, "reason": "no"}),
    ]
    return [
        ("POST", "/v1/tasks", {"queue": "work", "payload": 1}),
        ("POST", "/v1/tasks", {"queue": "work", "payload": 1, "dedupe_key": "key", "id": "given"}),
        ("POST", "/v1/tasks/batch", {"tasks": [{"queue": "work", "payload": 1}]}),
        ("POST", "/v1/reserve", {"queues": ["work"]}),
        ("POST", "/v1/reserve", {"queues": ["work", "more"], "wait_seconds": 30}),
        *(("POST", f"/v1/tasks/leased/{verb}", body) for verb, body in settle),
        *(("POST", f"/v1/tasks/{verb}", {"items": [{"id": "leased", **body}]}) for verb, body in settle),
        ("GET", "/v1/tasks", None),
        ("GET", "/v1/tasks?status=done", None),
        ("GET", "/v1/tasks/ready", None),
        ("GET", "/v1/tasks/ready/attempts", None),
        ("PATCH", "/v1/tasks/ready", {"priority": 1}),
        ("DELETE", "/v1/tasks/ready", None),
        ("GET", "/v1/dlq", None),
        ("GET", "/v1/dlq/dead", None),
        ("POST", "/v1/dlq/dead/requeue", {}),
        ("POST", "/v1/dlq/requeue", {}),
        ("POST", "/v1/dlq/purge", {}),
        ("DELETE", "/v1/dlq/dead", None),
        ("GET", "/readyz", None),
    ]


# Where they are a transaction by themselves, a database that is stopped in the middle may still commit them.
ONE_STATEMENT = (
    "POST /v1/tasks", "POST /v1/tasks/batch", "POST /v1/reserve", "POST /v1/tasks/leased/ack", "POST /v1/tasks/ack",
)  # fmt: skip


def answers(api: Caller, lease: Json) -> list[tuple[str, tuple[int, str, object]]]:
    """What each route answers while the database is away, asked all at once."""

    def ask(method: str, path: str, body: Json | None) -> tuple[int, str, object]:
        try:
            response = api.client.request(method, path, json=body)
        except httpx.TimeoutException:
            return 0, f"no answer within {ANSWER_SECONDS} seconds", None
        if response.is_success:
            return response.status_code, response.text, None
        return (*refused(response), response.json().get("applied", "not told"))

    # Far more than there are database connections, so that most wait for one.
    asked = requests(lease) * 3
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        told = [f"{method} {path}" for method, path, _ in asked]
        return list(zip(told, pool.map(lambda request: ask(*request), asked), strict=True))


def check_unavailable(api: Caller, lease: Json, *, under_way: Sequence[str] = ()) -> bool:
    """Every route says that nothing was done, and the process says that it is well.

    Of calls that may have been `under_way` the outcome may be unknown; whether it was of any.
    """
    other = [told for told in answers(api, lease) if told[1] != (*UNAVAILABLE, False)]
    assert [told for told in other if told[0] not in under_way or told[1] != (*UNAVAILABLE, None)] == []
    for path in ("/healthz", "/metrics", "/openapi.json"):
        assert api.client.get(path).status_code == 200
    return bool(other)


def recover(api: Caller) -> None:
    """Waits until the service is ready again by itself."""
    deadline = time.monotonic() + RECOVER_SECONDS
    while api.client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_killed_database(api: Caller, own_server: Server) -> None:
    lease = fill(api)
    before = api.everything()
    own_server.kill()
    try:
        check_unavailable(api, lease)
    finally:
        own_server.start()
    recover(api)
    assert api.everything() == before
    assert api.settle("ack", lease)["status"] == "done"
    assert [task["payload"] for task in api.reserve()] == ["kept"]


def test_paused_database(api: Caller, own_server: Server) -> None:
    lease = fill(api)
    before = api.everything()
    own_server.pause()
    try:
        unknown = check_unavailable(api, lease, under_way=ONE_STATEMENT)
    finally:
        own_server.resume()
    recover(api)
    if not unknown:
        assert api.everything() == before
        assert api.settle("ack", lease)["status"] == "done"
        assert [task["payload"] for task in api.reserve()] == ["kept"]


def test_service_ends_while_the_database_is_silent(own_server: Server, tmp_path: Path) -> None:
    """Whoever is asked to end does not wait for an answer that may never come."""
    url = own_server.create_database(f"outages_{uuid4().hex}")
    service = Service(url, tmp_path / "service.log", environment={"MQ_DATABASE_TIMEOUT_SECONDS": "2"})
    try:
        service.start()
        with connect(service, new_tenant()) as client:
            Caller(client).enqueue()
        own_server.pause()
        assert service.terminate() == 0
    finally:
        own_server.resume()
        service.close()


def test_restart_under_load(api: Caller, own_server: Server) -> None:
    """Whatever the database says while it goes down and comes up, callers hear of no bug of ours."""
    over = threading.Event()
    accepted: set[str] = set()
    told: set[tuple[int, str]] = set()

    def produce() -> None:
        while not over.is_set():
            response = api.client.post("/v1/tasks", json={"queue": "work", "payload": 1})
            if response.status_code == 201:
                accepted.add(response.json()["id"])
            else:
                told.add(refused(response))

    with ThreadPoolExecutor(max_workers=4) as pool:
        producers = [pool.submit(produce) for _ in range(4)]
        try:
            time.sleep(0.5)
            own_server.stop()
            own_server.start()
            recover(api)
        finally:
            over.set()
        for producer in producers:
            producer.result()
    assert told == {UNAVAILABLE}
    assert accepted
    assert accepted <= {task["id"] for task in api.tasks(limit=500)}


def test_waiting_reserve_hears_of_the_outage(api: Caller, own_server: Server) -> None:
    with ThreadPoolExecutor(max_workers=1) as pool:
        body = {"queues": ["nothing-there"], "wait_seconds": 30}
        waiting = pool.submit(api.client.post, "/v1/reserve", json=body)
        time.sleep(0.5)
        own_server.kill()
        try:
            assert refused(waiting.result()) == UNAVAILABLE
        finally:
            own_server.start()
    recover(api)


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outages") / "leasemq.db"


@pytest.fixture(scope="module")
def sqlite_service(sqlite_file: Path) -> Iterator[Service]:
    """A service on an SQLite file that others can lock."""
    log = sqlite_file.with_suffix(".log")
    service = Service(f"sqlite:///{sqlite_file}", log, environment={"MQ_DATABASE_TIMEOUT_SECONDS": "1"})
    try:
        service.start()
        yield service
    finally:
        end(service)


@pytest.fixture
def sqlite_api(sqlite_service: Service) -> Iterator[Caller]:
    with connect(sqlite_service, new_tenant()) as client:
        client.timeout = httpx.Timeout(ANSWER_SECONDS)
        yield Caller(client)


def test_sqlite_file_locked_by_another(sqlite_api: Caller, sqlite_file: Path) -> None:
    lease = fill(sqlite_api)
    before = sqlite_api.everything()
    with _exclusively(sqlite_file):
        told = answers(sqlite_api, lease)
        changing = [answer for answer in told if not answer[0].startswith("GET")]
        assert [answer for answer in changing if answer[1] != (*UNAVAILABLE, False)] == []
        # What only reads is not kept from it, or says so too.
        assert {answer[0] for _, answer in told} <= {200, 503}
        assert sqlite_api.client.get("/healthz").status_code == 200
    assert sqlite_api.everything() == before
    assert sqlite_api.settle("ack", lease)["status"] == "done"


def test_sqlite_file_locked_for_a_moment_is_waited_for(sqlite_api: Caller, sqlite_file: Path) -> None:
    with ThreadPoolExecutor(max_workers=1) as pool:
        with _exclusively(sqlite_file):
            waiting = pool.submit(sqlite_api.enqueue)
            time.sleep(0.3)
            assert not waiting.done()
        assert waiting.result()["existed"] is False


def test_schema_of_another_version_is_not_ready(sqlite_api: Caller, sqlite_file: Path) -> None:
    with closing(sqlite3.connect(sqlite_file, isolation_level=None)) as database:
        [current] = database.execute("SELECT version_num FROM alembic_version").fetchone()
        database.execute("UPDATE alembic_version SET version_num = 'future'")
        assert refused(sqlite_api.client.get("/readyz")) == UNAVAILABLE
        assert sqlite_api.client.get("/healthz").status_code == 200
        database.execute("UPDATE alembic_version SET version_num = ?", (current,))
    recover(sqlite_api)


@contextmanager
def _exclusively(file: Path) -> Iterator[None]:
    """Holds an SQLite file's lock, as another process would."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()
