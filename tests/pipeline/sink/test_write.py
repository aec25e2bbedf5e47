"""`df.write.format("mq")` on a real service: every field arrives, and what is wrong is told before anything is sent."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app.pipeline.sink.options import MAX_BATCH_BYTES
from tests.pipeline.sink.queue import Queue
from tests.servers.ports import LOOPBACK, free_port
from tests.service import Service

TOO_LARGE = 256 * 1024 + 1
LATER = "2030-01-02T03:04:05.678901Z"


def write(rows: DataFrame, service: Service, mode: str = "append", **options: Any) -> None:
    given = {"url": service.url, **{name: str(value) for name, value in options.items()}}
    rows.write.format("mq").mode(mode).options(**given).save()


def test_every_field_arrives(spark: SparkSession, service: Service, queue: Queue) -> None:
    rows = spark.createDataFrame(
        [("t-1", '{"b":1.10,"a":[1]}', "mail.send", '{"k":"ü"}', 7, 3, 1.5, datetime(2099, 1, 1, tzinfo=UTC), None),
         ("t-2", None, "", None, None, None, None, None, bytearray(b"\x00\xff"))],
        "id string, payload string, type string, meta string, priority int, max_attempts int, timeout_seconds double,"
        " expires_at timestamp, payload_base64 binary",
    )  # fmt: skip
    write(rows.withColumn("content_type", F.when(F.col("payload").isNull(), "image/png")), service, queue=queue.name)
    first, second = queue.take_all()
    assert (second["payload"], list(second["payload"]), second["meta"]) == (
        {"b": 1.1, "a": [1]},
        ["b", "a"],
        {"k": "ü"},
    )
    assert (second["id"], second["type"], second["priority"], second["max_attempts"]) == ("t-1", "mail.send", 7, 3)
    assert (second["timeout_seconds"], second["expires_at"]) == (1.5, "2099-01-01T00:00:00.000000Z")
    assert (first["id"], first["payload_base64"], first["content_type"]) == ("t-2", "AP8=", "image/png")


def test_times_are_exact(spark: SparkSession, service: Service, queue: Queue) -> None:
    rows = spark.sql(f"SELECT '1' AS payload, TIMESTAMP '{LATER}' AS available_at, 'due' AS id")
    write(rows, service, queue=queue.name)
    assert queue.look("due")["available_at"] == LATER


def test_tenants_get_their_own_tasks(spark: SparkSession, service: Service, queue: Queue) -> None:
    rows = spark.range(30).selectExpr("cast(id as string) payload", "concat('tenant-', id % 3) tenant_id")
    write(rows, service, queue=queue.name, key="payload")
    for number in range(3):
        own = Queue(service.url, queue.name, f"tenant-{number}")
        assert sorted(task["payload"] for task in own.take_all()) == list(range(number, 30, 3))
        own.close()


def refused_among_good(spark: SparkSession) -> DataFrame:
    """Twelve rows of which five are refused, each for a reason of its own, and one batch for all of them."""
    good = [(str(number), str(number), 1, "") for number in range(7)]
    bad = [
        ("bad json", "{", 1, ""),
        ("bad type", "1", 1, "no name"),
        ("bad priority", "1", 2**40, ""),
        ("too large", json.dumps("x" * TOO_LARGE), 1, ""),
        ("far too large", json.dumps("x" * MAX_BATCH_BYTES), 1, ""),
    ]
    frame = spark.createDataFrame(good[:4] + bad + good[4:], "key string, payload string, priority long, type string")
    return frame.coalesce(1)


def test_refused_rows_fail_the_job_at_its_end(spark: SparkSession, service: Service, queue: Queue) -> None:
    with pytest.raises(PySparkException) as failure:
        write(refused_among_good(spark), service, queue=queue.name, key="key")
    told = str(failure.value)
    assert "5 of 12 rows were refused, the others are enqueued" in told
    for reason in (
        "bad json: payload is not JSON",
        "bad type: type: a name has",
        "too large: payload has 262147 bytes",
    ):
        assert reason in told
    assert sorted(task["payload"] for task in queue.take_all()) == list(range(7))


def test_refused_rows_are_written_down(spark: SparkSession, service: Service, queue: Queue, refused_path: Path) -> None:
    rows = refused_among_good(spark)
    write(rows, service, queue=queue.name, key="key", on_refused="skip", refused_path=refused_path.as_uri())
    lines = [json.loads(line) for path in refused_path.iterdir() for line in path.read_text().splitlines()]
    assert {line["key"] for line in lines} == {"bad json", "bad type", "bad priority", "too large", "far too large"}
    assert all(line["reason"] for line in lines)
    tasks = {line["key"]: line["task"] for line in lines}
    assert (tasks["bad type"]["type"], tasks["bad json"]["payload"]) == ("no name", "{")
    assert queue.waiting() == 7


def test_an_id_that_is_taken_is_refused_alone(spark: SparkSession, service: Service, queue: Queue) -> None:
    write(spark.sql("SELECT '0' AS payload, 'taken' AS id"), service, queue=queue.name)
    rows = spark.range(9).selectExpr("cast(id as string) payload", "if(id = 4, 'taken', concat('own-', id)) id")
    with pytest.raises(PySparkException, match=r"(?s)1 of 9 rows were refused.*taken"):
        write(rows.coalesce(1), service, queue=queue.name, key="id")
    assert queue.waiting() == 9


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": f"http://{LOOPBACK}:{free_port()}"}, "cannot be reached"),
        ({"url": "mail"}, "url is no address of a service"),
        ({"queues": "mail"}, "unknown option 'queues'"),
        ({"key": "nowhere"}, "there is no key column 'nowhere'"),
        ({"refused_path": "/dev/null/x"}, "refused rows cannot be written"),
    ],
)
def test_nothing_is_sent_when_something_is_wrong(
    spark: SparkSession, service: Service, queue: Queue, options: dict[str, str], told: str
) -> None:
    rows = spark.sql("SELECT '1' AS payload")
    with pytest.raises(PySparkException, match=told):
        write(rows, service, **{"queue": queue.name, "api_key": "s3cret", **options})
    assert queue.waiting() == 0


def test_a_queue_is_not_overwritten(spark: SparkSession, service: Service, queue: Queue) -> None:
    with pytest.raises(PySparkException, match="rows can only be added to a queue"):
        write(spark.sql("SELECT '1' AS payload"), service, "overwrite", queue=queue.name)


def test_a_key_is_in_no_plan(spark: SparkSession, service: Service, queue: Queue) -> None:
    write(spark.sql("SELECT '1' AS payload"), service, queue=queue.name, api_key="s3cret-in-no-plan")
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [executions.apply(index).physicalPlanDescription() for index in range(executions.size())]
    assert any("AppendData mq" in plan for plan in plans)
    assert not any("s3cret-in-no-plan" in plan for plan in plans)
