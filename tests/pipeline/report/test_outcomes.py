"""What became of the tasks."""

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from app.pipeline.report.buckets import HOUR
from app.pipeline.report.outcomes import (
    attempts_histogram,
    outcome_aggregates,
    rhythm,
    throughput_by_queue_and_hour,
)
from app.pipeline.report.summary import By, part, summarise
from tests.pipeline.report.making import T0, after, finished, rows_of


def test_tasks_by_outcome(spark: SparkSession) -> None:
    tasks = finished(
        spark,
        done=[
            {"payload": b"123", "first_leased_at": T0},
            {"attempts": 2, "first_leased_at": T0},
            {"first_leased_at": T0},
            {"status": "expired", "attempts": 0},
            {"status": "cancelled", "attempts": 0},
        ],
        dead=[{"attempts": 5, "failed_at": T0, "first_leased_at": T0}],
    )
    [row] = part(summarise(tasks, HOUR, outcome_aggregates()).toArrow(), By.ALL).to_pylist()
    assert row == {
        "tasks": 6, "done": 3, "dead": 1, "expired": 1, "cancelled": 1, "success_rate": 0.75,
        "retried": 2, "never_started": 2, "payload_bytes": 13,
    }  # fmt: skip


def test_what_was_never_decided_has_no_success_rate(spark: SparkSession) -> None:
    tasks = finished(spark, [{"status": "expired"}])
    [row] = part(summarise(tasks, HOUR, outcome_aggregates()).toArrow(), By.ALL).to_pylist()
    assert row["success_rate"] is None


def test_attempts_histogram(spark: SparkSession) -> None:
    tasks = finished(
        spark,
        done=[{"attempts": n} for n in (1, 1, 2, 10, 400)] + [{"attempts": 1, "status": "cancelled"}],
        dead=[{"attempts": 2}],
    )
    told = [tuple(row.values()) for row in rows_of(attempts_histogram(tasks))]
    assert told == [(1, 2, 0), (2, 1, 1), (10, 2, 0)]


def test_throughput_by_queue_and_hour(spark: SparkSession) -> None:
    tasks = finished(
        spark,
        done=[{"queue": "a", "finished_at": T0}, {"queue": "a", "finished_at": after(60)}, {"queue": "b"}],
        dead=[{"queue": "a", "failed_at": after(3600)}],
    )
    told = [tuple(row.values()) for row in rows_of(throughput_by_queue_and_hour(tasks, HOUR))]
    assert told == [("a", T0, 2, 0), ("a", after(3600), 1, 1), ("b", T0, 1, 0)]


def test_the_rhythm_of_a_week_begins_on_monday(spark: SparkSession) -> None:
    monday, sunday = datetime(2026, 3, 2, 0, 30, tzinfo=UTC), datetime(2026, 3, 8, 23, 59, tzinfo=UTC)
    tasks = finished(spark, [{"finished_at": monday}], dead=[{"failed_at": sunday}])
    assert [tuple(row.values()) for row in rows_of(rhythm(tasks))] == [(1, 0, 1, 0), (7, 23, 1, 1)]
