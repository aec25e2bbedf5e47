"""`leasemq pipeline replay`: what is over becomes tasks again, each once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.pipeline.errors import PipelineError
from app.pipeline.lake import commit_batch, create_lake
from app.pipeline.replay import once, to_tasks
from app.pipeline.sink.job import IDENTITY
from app.pipeline.tables import DLQ, HISTORY, Kind, Table
from tests.pipeline.sink.command import run_command
from tests.pipeline.sink.queue import Queue
from tests.service import Service

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
EMPTY: dict[Kind, Any] = {
    Kind.TEXT: "x", Kind.BYTES: b"", Kind.INTEGER: 0, Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.BOOLEAN: True,
    Kind.INSTANT: T0,
}  # fmt: skip

Replay = Callable[..., int]


def row(table: Table, number: int, **fields: Any) -> dict[str, Any]:
    """A finished task or a dead letter, one minute later for each number."""
    values = {column.name: None if column.nullable else EMPTY[column.kind] for column in table.columns}
    ended_at = "failed_at" if table is DLQ else "finished_at"
    told = {
        "tenant_id": "default", "task_id": f"task-{number}", "queue": "mail", "type": "send", "meta": '{"k":1}',
        "payload": f'{{"n": {number}.10}}'.encode(), "content_type": "application/json", "priority": 7,
        "max_attempts": 3, "attempts": 2, "timeout_seconds": 4.5, "status": "done", "dedupe_key": "held",
        "available_at": T0 + timedelta(days=9999), "expires_at": T0, ended_at: T0 + timedelta(minutes=number),
    }  # fmt: skip
    return {**values, **{name: value for name, value in told.items() if name in values}, table.key: number, **fields}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "lake"
    history = [row(HISTORY, number) for number in range(6)]
    history[4] |= {"payload": b"\x00\xff", "payload_is_json": False, "content_type": "image/png"}
    history[5] |= {"tenant_id": "acme"}
    letters = [row(DLQ, number, reason="boom") for number in range(2)]
    frames = {
        HISTORY: spark.createDataFrame(history, HISTORY.spark_schema),
        DLQ: spark.createDataFrame(letters, DLQ.spark_schema),
    }
    commit_batch(create_lake(spark, str(path)), frames)
    return path


@pytest.fixture
def replay(lake: Path, service: Service, queue: Queue, tmp_path: Path) -> Replay:
    def run(*arguments: str, lake: Path = lake) -> int:
        return run_command(
            "replay", "--lake", lake, "--to", service.url, "--queue", queue.name, "--state", tmp_path, *arguments
        )  # fmt: skip

    return run


def test_tasks_are_replayed_once(replay: Replay, service: Service, queue: Queue) -> None:
    chosen = ["--where", "queue = 'mail' AND finished_at >= '2026-03-01T12:02:00Z'", "--job", queue.name[:30]]
    assert replay(*chosen) == 0
    tasks = {str(task.get("payload") or task.get("payload_base64")): task for task in queue.take_all()}
    assert set(tasks) == {"{'n': 2.1}", "{'n': 3.1}", "AP8="}
    task = tasks["{'n': 2.1}"]
    carried = ("type", "meta", "priority", "max_attempts", "timeout_seconds", "content_type")
    assert [task[name] for name in carried] == ["send", {"k": 1}, 7, 3, 4.5, "application/json"]
    # Attempts, times, id and dedupe key are its own.
    assert (task["attempts"], task["expires_at"], task["id"] != "task-2") == (1, None, True)
    assert tasks["AP8="]["content_type"] == "image/png"
    other = Queue(service.url, queue.name, "acme")
    assert [task["payload"] for task in other.take_all()] == [{"n": 5.1}]
    other.close()
    assert replay(*chosen) == 0
    assert queue.waiting() == 0


def test_dead_letters_are_replayed_under_their_ids(replay: Replay, queue: Queue) -> None:
    assert replay("--dead-letters", "--where", "reason = 'boom' AND id = 1", "--keep-ids") == 0
    assert [(task["id"], task["payload"]) for task in queue.take_all()] == [("task-1", {"n": 1.1})]


def test_a_condition_that_nothing_meets_is_a_job_of_none(
    replay: Replay, queue: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay("--where", "queue = 'nosuch'") == 0
    assert "0 enqueued, 0 were there already, 0 refused" in capsys.readouterr().out
    assert queue.waiting() == 0


def test_a_preview_sends_nothing(replay: Replay, queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay("--dry-run", "--where", "id < 2") == 0
    shown = capsys.readouterr().out.splitlines()
    assert (shown[0], len(shown)) == ("2 tasks would be enqueued", 3)
    assert queue.waiting() == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--where", "queue ="], "the condition cannot be understood"),
        (["--where", "nope = 1"], "`nope`"),
        (["--where", "finished_at >= 'some day'"], "the rows cannot be read: .*'some day'"),
        (["--where", "id IN (SELECT 1)"], "may not have a subquery"),
        (["--database-url", "sqlite:///x.db"], "add --dead-letters"),
        (["--rate", "0"], "--rate is more than 0"),
        (["--rate", "nan"], "--rate is more than 0"),
        (["--on-refused", "skip"], "--on-refused skip needs --refused-path DIR"),
    ],
)
def test_bad_input_sends_nothing(replay: Replay, queue: Queue, arguments: list[str], told: str) -> None:
    with pytest.raises(PipelineError, match=told) as refusal:
        replay(*arguments)
    assert "\n" not in str(refusal.value)
    assert queue.waiting() == 0


def test_dead_letters_come_from_the_database_too(
    replay: Replay, service: Service, queue: Queue, service_database: str
) -> None:
    dead = Queue(service.url, f"{queue.name}-dead")
    dead.add({"payload": 1}, {"payload": 2})
    dead.fail_all()
    dead.close()
    from_database = ["--dead-letters", "--database-url", service_database, "--where", f"queue = '{dead.name}'"]
    assert replay(*from_database) == 0
    assert sorted(task["payload"] for task in queue.take_all()) == [1, 2]
    with pytest.raises(PipelineError) as refusal:
        replay("--dead-letters", "--database-url", "sqlite:////nowhere/at-all.db")
    assert "Traceback" not in str(refusal.value)


def test_a_folder_that_is_no_lake_is_told(replay: Replay, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="is not a lake"):
        replay(lake=tmp_path)


def test_a_letter_in_the_lake_and_in_the_database_is_one(spark: SparkSession) -> None:
    lake = spark.createDataFrame([row(DLQ, 1), row(DLQ, 2)], DLQ.spark_schema)
    # The same number at another time: it was requeued, and died again.
    again = row(DLQ, 2, failed_at=T0 + timedelta(days=1))
    database = spark.createDataFrame([row(DLQ, 2), again], DLQ.spark_schema)
    tasks = to_tasks(once([lake, database], DLQ), DLQ)
    identities = [task[IDENTITY] for task in tasks.collect()]
    assert len(set(identities)) == len(identities) == 3
