"""`leasemq pipeline report` on a real lake and a real service's database."""

import argparse
import logging
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from app.cli import main
from app.pipeline.commands.report import moment
from app.pipeline.datasource import register
from app.pipeline.errors import PipelineError
from app.pipeline.lake import commit_batch, create_lake
from app.pipeline.report.frames import Period
from app.pipeline.report.make import STEPS, ReportRequest, check_request, make_report
from app.pipeline.report.output import PAGE
from app.pipeline.report.recorded import read_recorded
from app.pipeline.tables import ATTEMPTS, HISTORY
from tests.conftest import DIALECTS, MakeDatabase
from tests.pipeline.report.making import T0, frame, history
from tests.service import Service

OLD = "archived-long-ago"


@pytest.fixture(scope="module", params=DIALECTS)
def database(
    request: pytest.FixtureRequest, make_database: MakeDatabase, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A database in which, of four tasks, two are done, one is dead and one waits."""
    url = make_database(request.param)
    with (
        Service(url, tmp_path_factory.mktemp("live") / "log") as service,
        httpx.Client(base_url=f"{service.url}/v1") as client,
    ):
        tasks = [{"queue": "mail", "payload": n} for n in range(4)]
        client.post("/tasks/batch", json={"tasks": tasks}).raise_for_status()
        reserved = client.post("/reserve", json={"queues": ["mail"], "limit": 3, "worker_id": "w"}).json()["tasks"]
        leases = [{"id": task["id"], "lease_token": task["lease_token"]} for task in reserved]
        client.post("/tasks/ack", json={"items": leases[:2]}).raise_for_status()
        client.post("/tasks/fail", json={"items": [{**leases[2], "reason": "no 7"}]}).raise_for_status()
    return url


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake with three tasks of long ago."""
    path = str(tmp_path_factory.mktemp("lake"))
    old = [{"id": 10**6 + number, "task_id": OLD, "queue": "old"} for number in range(3)]
    commit_batch(create_lake(spark, path), {HISTORY: history(spark, old), ATTEMPTS: frame(spark, ATTEMPTS, old)})
    return path


@pytest.fixture(scope="module")
def shared_lake(spark: SparkSession, database: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake with one task of long ago, and with what the database still holds: archived, and not pruned yet."""
    path = str(tmp_path_factory.mktemp("lake"))
    register(spark)
    live = {
        table: spark.read.format("mq").options(url=database, table=table.name).load() for table in (HISTORY, ATTEMPTS)
    }
    old_task = history(spark, [{"id": 10**6, "task_id": OLD, "queue": "old"}])
    old_attempt = frame(spark, ATTEMPTS, [{"id": 10**6, "task_id": OLD, "queue": "old"}])
    commit_batch(create_lake(spark, path), {HISTORY: old_task, ATTEMPTS: old_attempt})
    commit_batch(create_lake(spark, path), live)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "report"


def report(spark: SparkSession, request: ReportRequest) -> list[str]:
    told: list[str] = []
    policies = check_request(request)
    assert make_report(spark, request, policies, datetime.now(UTC), told.append) == request.out / PAGE
    return told


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    return list(pyarrow.parquet.read_table(out / "tables" / f"{table}.parquet").to_pylist())


def test_lake_and_live_are_one(spark: SparkSession, shared_lake: str, database: str, out: Path) -> None:
    told = report(spark, ReportRequest(shared_lake, out, live=database))
    assert tuple(told) == STEPS
    counted = {row["queue"]: (row["done"], row["dead"]) for row in rows(out, "tasks_by_queue")}
    assert counted == {"mail": (2, 1), "old": (1, 0)}
    assert {row["queue"]: row["attempts"] for row in rows(out, "attempts_by_queue")} == {"mail": 3, "old": 1}
    assert [(row["queue"], row["ready"]) for row in rows(out, "backlog_by_queue")] == [("mail", 1)]
    assert [row["reason"] for row in rows(out, "failure_reasons")] == ["no #"]
    assert {row["logged"] for row in rows(out, "attempt_log")} == {"all"}
    assert "4 tasks" in (out / PAGE).read_text()
    assert {file.suffix for file in (out / "tables").iterdir()} == {".parquet", ".csv"}
    assert len(rows(out, "advice")) == 2 * 5


def test_a_period_holds_for_the_database_too(spark: SparkSession, shared_lake: str, database: str) -> None:
    with read_recorded(spark, shared_lake, database, Period(since=T0 + timedelta(days=1))) as recorded:
        assert {row["queue"] for row in recorded.history.collect()} == {"mail"}
        assert recorded.dead.count() == 1
    with read_recorded(spark, shared_lake, database, Period(until=T0 + timedelta(days=1))) as recorded:
        assert [row["task_id"] for row in recorded.history.collect()] == [OLD]
        assert recorded.dead.count() == 0
        assert recorded.live is not None
        assert recorded.live.count() == 1


def test_a_lake_alone_has_nothing_live(spark: SparkSession, lake: str) -> None:
    with read_recorded(spark, lake, None, Period()) as recorded:
        assert recorded.history.count() == 3
        assert recorded.live is None


@pytest.fixture
def _logs_as_before() -> Iterator[None]:
    """The command sends the logs elsewhere, for the whole process."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--lake", "{tmp}", "--out", "{tmp}/out"], "is not a lake"),
        (["--lake", "{lake}", "--out", "{tmp}"], "holds files that are not a report's"),
        (["--lake", "{lake}", "--out", "{tmp}/out", "--live", "postgresql://u:secret@127.0.0.1:1/x"], "leasemq: "),
        (["--lake", "{lake}", "--out", "{tmp}/out", "--live", "sqlite:///{tmp}/none.db"], "none.db"),
        (["--lake", "{lake}", "--out", "{tmp}/out", "--since", "2026-02-02", "--until", "2026-02-02"], "--since"),
    ],
)
@pytest.mark.usefixtures("spark", "_logs_as_before")
def test_bad_input_is_told_in_a_line(
    lake: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    (tmp_path / "mine").write_text("mine")
    given = [option.format(tmp=tmp_path, lake=lake) for option in options]
    assert main(["pipeline", "report", *given]) == 2
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("leasemq: ")
    assert told in line
    assert "secret" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_that_cannot_be_read_is_told_in_a_line(
    spark: SparkSession, lake: str, tmp_path: Path, out: Path
) -> None:
    broken = shutil.copytree(lake, tmp_path / "broken")
    for file in (broken / HISTORY.name).rglob("*.parquet"):
        file.write_bytes(b"PAR1" + bytes(file.stat().st_size - 8) + b"PAR1")
    with pytest.raises(PipelineError, match=r"^The report cannot be made: .+$"):
        report(spark, ReportRequest(str(broken), out))
    assert not out.exists()


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert moment("2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)
    assert moment("2026-03-01T06:00+02:00") == datetime(2026, 3, 1, 6, tzinfo=timezone(timedelta(hours=2)))
    assert abs(datetime.now(UTC) - timedelta(days=7) - moment("7d")) < timedelta(minutes=5)
    for wrong in ("yesterday", "", "7", "999999999w"):
        with pytest.raises(argparse.ArgumentTypeError):
            moment(wrong)
