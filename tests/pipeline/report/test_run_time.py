"""What the attempt log tells."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from app.pipeline.report.buckets import HOUR
from app.pipeline.report.coverage import marked
from app.pipeline.report.run_time import attempt_aggregates, run_time_aggregates
from app.pipeline.report.summary import By, part, summarise
from tests.pipeline.report.making import after, attempts

ROWS = [
    {"success": True, "finished_at": after(2)},
    {"success": True, "finished_at": after(4)},
    {"success": False, "reason": "boom", "finished_at": after(6)},
    {"success": False, "reason": "lease expired", "finished_at": after(30)},
]


def test_attempts_and_what_the_failed_ones_cost(spark: SparkSession) -> None:
    [row] = part(summarise(attempts(spark, ROWS), HOUR, attempt_aggregates()).toArrow(), By.ALL).to_pylist()
    assert row == {
        "attempts": 4, "succeeded": 2, "failed": 2, "lost": 1, "lost_share": 0.25,
        "seconds": 42.0, "failed_seconds": 36.0, "failed_seconds_share": pytest.approx(36 / 42), "lost_seconds": 30.0,
    }  # fmt: skip


def test_a_lost_lease_is_no_run_time(spark: SparkSession) -> None:
    [row] = part(summarise(attempts(spark, ROWS), HOUR, run_time_aggregates()).toArrow(), By.ALL).to_pylist()
    assert (row["runs"], row["run_p50_seconds"], row["run_max_seconds"]) == (3, 4.0, 6.0)


def test_where_nothing_failed_nothing_was_wasted(spark: SparkSession) -> None:
    [row] = part(summarise(attempts(spark, ROWS[:2]), HOUR, attempt_aggregates()).toArrow(), By.ALL).to_pylist()
    assert (row["failed_seconds"], row["failed_seconds_share"], row["lost_share"]) == (0.0, 0.0, 0.0)


def test_failures_alone_tell_no_share_and_no_run_time(spark: SparkSession) -> None:
    rows = [{"queue": "all", **row} for row in ROWS] + [{"queue": "failures", **row} for row in ROWS[2:]]
    coverage = pa.table({"queue": ["all", "failures"], "logged": ["all", "failures"]})
    summary = summarise(
        marked(attempts(spark, rows), coverage), HOUR, [*attempt_aggregates(), *run_time_aggregates()]
    ).toArrow()
    [total] = part(summary, By.ALL).to_pylist()
    assert (total["failed"], total["lost"], total["failed_seconds"]) == (4, 2, 72.0)
    assert (total["runs"], total["lost_share"]) == (3, 0.25)
    assert total["failed_seconds_share"] == pytest.approx(36 / 42)
    [_, unfair] = part(summary, By.QUEUE).to_pylist()
    assert (unfair["failed"], unfair["lost_share"], unfair["failed_seconds_share"]) == (2, None, None)
    assert (unfair["runs"], unfair["run_p50_seconds"]) == (0, None)
