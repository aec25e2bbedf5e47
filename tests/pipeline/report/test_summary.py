"""One pass over a frame, and percentiles that agree with exact ones."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.pipeline.report.buckets import HOUR
from app.pipeline.report.run_time import run_time_aggregates
from app.pipeline.report.summary import PERCENTILES, By, part, share, summarise, total
from tests.pipeline.report.making import T0, after, attempts, finished, rows_of


def test_each_part_counts_every_row_once(spark: SparkSession) -> None:
    rows: list[dict[str, Any]] = [
        {"queue": "a", "type": "t", "tenant_id": "one", "finished_at": T0},
        {"queue": "a", "type": "", "tenant_id": "two", "finished_at": after(3600)},
        {"queue": "b", "type": "t", "tenant_id": "one", "finished_at": after(3601)},
    ]
    summary = summarise(finished(spark, rows), HOUR, [F.count("*").alias("tasks")]).toArrow()
    told = {by: [tuple(row.values()) for row in part(summary, by).to_pylist()] for by in By}
    assert told == {
        By.ALL: [(3,)],
        By.QUEUE: [("a", 2), ("b", 1)],
        By.TYPE: [("", 1), ("t", 2)],
        By.TENANT: [("one", 2), ("two", 1)],
        By.HOUR: [(T0, 1), (after(3600), 2)],
    }


def test_of_nothing_there_is_no_part(spark: SparkSession) -> None:
    summary = summarise(finished(spark, []), HOUR, [F.count("*").alias("tasks")]).toArrow()
    assert part(summary, By.QUEUE).to_pylist() == []


@pytest.mark.parametrize("shape", ["lognormal", "equal", "two humps"])
def test_percentiles_agree_with_exact_ones(spark: SparkSession, shape: str) -> None:
    chance = random.Random(shape)
    draws: dict[str, Callable[[], float]] = {
        "lognormal": lambda: chance.lognormvariate(-1, 2),
        "equal": lambda: 0.25,
        "two humps": lambda: chance.choice([chance.gauss(0.05, 0.01), chance.gauss(30, 5)]),
    }
    seconds = [max(0.0, round(draws[shape](), 6)) for _ in range(20_000)]
    rows = [{"queue": f"q{n % 2}", "finished_at": after(value)} for n, value in enumerate(seconds)]
    summary = summarise(attempts(spark, rows), 24 * HOUR, run_time_aggregates()).toArrow()
    found = {row["queue"]: row for row in part(summary, By.QUEUE).to_pylist()}
    for name, values in (("q0", sorted(seconds[::2])), ("q1", sorted(seconds[1::2]))):
        for percentile, rank in PERCENTILES.items():
            lowest, highest = _around(values, rank)
            assert lowest <= found[name][f"run_{percentile}_seconds"] <= highest
        assert found[name]["run_max_seconds"] == values[-1]


def test_shares_of_nothing_are_unknown_and_sums_of_nothing_zero(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(1, 4), (1, 0)], "part int, whole int")
    assert [row["s"] for row in rows_of(numbers.select(share(F.col("part"), F.col("whole")).alias("s")))] == [
        0.25,
        None,
    ]
    assert rows_of(numbers.where("part > 1").agg(total(F.col("part")).alias("t"))) == [{"t": 0}]


def _around(values: Sequence[float], rank: float) -> tuple[float, float]:
    """The exact value's neighbours: the rank may be off by one in ten thousand."""
    exact, off = rank * len(values), len(values) / 10_000 + 1
    return values[int(exact - off)], values[min(len(values) - 1, int(exact + off))]
