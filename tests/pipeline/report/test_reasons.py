"""Errors of a kind have one fingerprint."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.pipeline.report.fingerprint import LONGEST, NO_REASON, fingerprint
from app.pipeline.report.reasons import failure_reasons, failures, failures_total
from tests.pipeline.report.making import T0, after, attempts, finished, rows_of

TRACEBACK = 'Traceback (most recent call last):\n  File "/srv/a.py", line 7, in f\n    g()\nValueError: bad amount 12\n'
CASES = {
    "timeout after 30.5 s, attempt 3": "timeout after # s, attempt #",
    "order_12345 not found": "order_# not found",
    "user 7f9c2ba4-e88f-4ad8-8d3e-1b1f3c2a9d10 is gone": "user <uuid> is gone",
    "object at 0x7F3a9c": "object at <hex>",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 refused": "commit <hex> refused",
    "key 'a b' is missing in \"c 'd'\"": "key '…' is missing in \"…\"",
    "can't reach the host's port": "can't reach the host's port",
    "no column `total`": "no column `…`",
    "at 2026-01-02T03:04:05.678Z and 2026-01-02": "at <time> and <time>",
    "mail to ann.b+c@mail.example.org bounced": "mail to <email> bounced",
    "10.0.0.7:5432 refused": "# refused",
    "task 01J9ZK3M5N7P9Q1R3S5T7V9W1X lost": "task <id> lost",
    "deadbeef cafe decade facade": "deadbeef cafe decade facade",
    "  spread \n over\tlines  ": "spread over lines",
    TRACEBACK: "ValueError: bad amount #",
    "": NO_REASON,
    "   ": NO_REASON,
    "x" * 9000: "x" * LONGEST,
    "Fehler 7 – größer als 5 €": "Fehler # – größer als # €",
    "<script>alert(1)</script>": "<script>alert(#)</script>",
}


@pytest.fixture(scope="module")
def fingerprints(spark: SparkSession) -> dict[str, str]:
    texts = spark.createDataFrame([(text,) for text in CASES], "text string")
    return {
        row["text"]: row["print"] for row in rows_of(texts.select("text", fingerprint(F.col("text")).alias("print")))
    }


@pytest.mark.parametrize("text", CASES, ids=lambda text: repr(text[:30]))
def test_fingerprint(fingerprints: dict[str, str], text: str) -> None:
    assert fingerprints[text] == CASES[text]


def test_no_reason_has_a_fingerprint_too(spark: SparkSession) -> None:
    nothing = spark.createDataFrame([(None,)], "text string")
    assert rows_of(nothing.select(fingerprint(F.col("text")).alias("print"))) == [{"print": NO_REASON}]


def test_failures_by_fingerprint(spark: SparkSession) -> None:
    failed = attempts(
        spark,
        [
            {"queue": "a", "task_id": "1", "success": False, "reason": "timeout after 3 s", "finished_at": T0},
            {"queue": "b", "task_id": "2", "success": False, "reason": "timeout after 25 s", "finished_at": after(9)},
            {"queue": "b", "task_id": "2", "success": False, "reason": "timeout after 4 s", "finished_at": after(5)},
            {"queue": "a", "task_id": "3", "success": False, "reason": None, "finished_at": T0},
            {"queue": "a", "task_id": "3", "success": True},
        ],
    )
    found = failures(finished(spark, []), failed)
    first, second = rows_of(failure_reasons(found))
    assert first == {
        "reason": "timeout after # s", "failures": 3, "about_tasks": 2, "most_in_queue": "b", "about_queues": 2,
        "example": "timeout after 25 s", "first_at": T0, "last_at": after(9),
    }  # fmt: skip
    assert (second["reason"], second["failures"], second["example"]) == (NO_REASON, 1, None)
    assert rows_of(failures_total(found)) == [{"failures": 4, "without_reason": 1}]


def test_no_more_tasks_than_failures(spark: SparkSession) -> None:
    # Of these 128 names Spark's estimate is 132.
    failed = attempts(spark, [{"task_id": str(number), "success": False, "reason": "boom"} for number in range(128)])
    [row] = rows_of(failure_reasons(failures(finished(spark, []), failed)))
    assert (row["failures"], row["about_tasks"]) == (128, 128)


def test_where_no_failure_is_logged_the_dead_letters_tell(spark: SparkSession) -> None:
    tasks = finished(spark, [], dead=[{"queue": "logged", "reason": "boom"}, {"queue": "unlogged", "reason": "bang"}])
    logged = attempts(
        spark,
        [{"queue": "logged", "success": False, "reason": "boom"}, {"queue": "unlogged", "success": True}],
    )
    told = [(row["queue"], row["reason"]) for row in rows_of(failures(tasks, logged))]
    assert told == [("logged", "boom"), ("unlogged", "bang")]
