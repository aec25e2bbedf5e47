"""From due to first lease, and only where the due time is known."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.pipeline.report.buckets import HOUR
from app.pipeline.report.summary import By, part, summarise
from app.pipeline.report.wait import wait_aggregates, wait_seconds
from tests.pipeline.report.making import T0, after, finished, rows_of

CASES: list[tuple[str, dict[str, Any], float | None]] = [
    ("due when accepted", {"available_at": T0, "first_leased_at": after(1.5)}, 1.5),
    ("leased at the very moment", {"available_at": T0, "first_leased_at": T0}, 0.0),
    ("delayed", {"available_at": after(60), "first_leased_at": after(62)}, 2.0),
    ("due before it was accepted", {"available_at": after(-600), "first_leased_at": after(3)}, 3.0),
    ("retried: the due time is the retry's", {"available_at": after(20), "first_leased_at": after(3)}, None),
    ("never leased", {"available_at": T0, "first_leased_at": None}, None),
    ("lost its lease: the due time stays", {"available_at": T0, "first_leased_at": after(4), "attempts": 3}, 4.0),
]


@pytest.fixture(scope="module")
def waits(spark: SparkSession) -> dict[str, float | None]:
    tasks = finished(spark, [{"task_id": name, "created_at": T0, **row} for name, row, _ in CASES])
    return {row["task_id"]: row["wait"] for row in rows_of(tasks.select("task_id", wait_seconds().alias("wait")))}


@pytest.mark.parametrize(("name", "row", "seconds"), CASES, ids=[name for name, _, _ in CASES])
def test_wait(waits: dict[str, float | None], name: str, row: dict[str, Any], seconds: float | None) -> None:
    assert waits[name] == seconds


def test_what_is_left_out_is_told(spark: SparkSession) -> None:
    tasks = finished(spark, [{"created_at": T0, **row} for _, row, _ in CASES])
    [row] = part(summarise(tasks, HOUR, wait_aggregates()).toArrow(), By.ALL).to_pylist()
    assert (row["waits_known"], row["waits_unknown"]) == (5, 1)
    assert row["waits_unknown_share"] == pytest.approx(1 / 6)
    assert (row["wait_p50_seconds"], row["wait_max_seconds"]) == (2.0, 4.0)
