"""Tasks that stand out, who used the queue, and what is live now."""

from pyspark.sql import SparkSession

from app.pipeline.report.backlog import backlog_by_queue
from app.pipeline.report.buckets import HOUR
from app.pipeline.report.extremes import most_retried_tasks, slowest_tasks
from app.pipeline.report.outcomes import outcome_aggregates
from app.pipeline.report.run_time import attempt_aggregates
from app.pipeline.report.summary import By, part, summarise
from app.pipeline.report.usage import usage_by_tenant
from tests.pipeline.report.making import T0, after, attempts, finished, live, rows_of


def test_slowest_tasks_are_those_that_ran(spark: SparkSession) -> None:
    ended = attempts(
        spark,
        [
            {"task_id": "quick", "finished_at": after(1)},
            {"task_id": "slow", "finished_at": after(50), "success": False, "reason": "x"},
            {"task_id": "slower", "finished_at": after(60)},
            {"task_id": "lost", "finished_at": after(600), "success": False, "reason": "lease expired"},
        ],
    )
    told = [(row["task_id"], row["seconds"]) for row in rows_of(slowest_tasks(ended, top=2))]
    assert told == [("slower", 60.0), ("slow", 50.0)]


def test_most_retried_tasks(spark: SparkSession) -> None:
    tasks = finished(
        spark,
        [{"task_id": "once"}, {"task_id": "twice", "attempts": 2}, {"task_id": "thrice", "attempts": 3}],
        dead=[{"task_id": "dead", "attempts": 5, "reason": "r" * 5000}],
    )
    found = rows_of(most_retried_tasks(tasks, top=3))
    assert [(row["task_id"], row["attempts"], row["status"]) for row in found] == [
        ("dead", 5, "dead"), ("thrice", 3, "done"), ("twice", 2, "done"),
    ]  # fmt: skip
    assert len(found[0]["reason"]) == 200


def test_usage_by_tenant(spark: SparkSession) -> None:
    tasks = finished(spark, [{"tenant_id": "a", "payload": b"1234"}, {"tenant_id": "a"}, {"tenant_id": "b"}])
    ended = attempts(spark, [{"tenant_id": "a", "finished_at": after(3)}, {"tenant_id": "c", "finished_at": after(4)}])
    usage = usage_by_tenant(
        part(summarise(tasks, HOUR, outcome_aggregates()).toArrow(), By.TENANT),
        part(summarise(ended, HOUR, attempt_aggregates()).toArrow(), By.TENANT),
    )
    assert [tuple(row.values()) for row in usage.to_pylist()] == [
        ("a", 2, 6, 1, 3.0), ("b", 1, 2, 0, 0.0), ("c", 0, 0, 1, 4.0),
    ]  # fmt: skip


def test_the_backlog_is_as_time_has_made_it(spark: SparkSession) -> None:
    now = after(100)
    tasks = live(
        spark,
        [
            {"queue": "a", "available_at": after(40)},
            {"queue": "a", "status": "scheduled", "available_at": after(90)},
            {"queue": "a", "status": "scheduled", "available_at": after(130)},
            {"queue": "a", "status": "leased", "available_at": T0, "lease_until": after(101)},
            {"queue": "a", "status": "leased", "available_at": after(30), "lease_until": after(99)},
            {"queue": "b", "status": "scheduled", "available_at": after(500)},
        ],
    )
    first, second = rows_of(backlog_by_queue(tasks, now))
    assert first == {
        "queue": "a", "ready": 3, "scheduled": 1, "leased": 1, "oldest_ready_seconds": 70.0, "next_at": after(130),
    }  # fmt: skip
    assert (second["ready"], second["oldest_ready_seconds"]) == (0, None)
