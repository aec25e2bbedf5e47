"""The session that everything of the pipeline runs in."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.pipeline.session import local_settings


def test_times_are_utc(spark: SparkSession) -> None:
    row = spark.range(1).select(F.to_timestamp(F.lit("2026-01-02 03:04:05")).cast("long").alias("at")).first()
    assert row is not None
    assert row.at == 1767323045


@pytest.mark.parametrize(
    ("master", "heap"), [("local", "480m"), ("local[1]", "480m"), ("local[2,3]", "480m"), ("local[16]", "1376m")]
)
def test_the_heap_goes_by_the_cores(monkeypatch: pytest.MonkeyPatch, master: str, heap: str) -> None:
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    assert local_settings(master)["spark.driver.memory"] == heap


def test_whoever_says_how_much_memory_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")
    assert local_settings("local[*]")["spark.driver.memory"] == "3g"
