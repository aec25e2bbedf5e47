"""The session that everything of the pipeline runs in."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_times_are_utc(spark: SparkSession) -> None:
    row = spark.range(1).select(F.to_timestamp(F.lit("2026-01-02 03:04:05")).cast("long").alias("at")).first()
    assert row is not None
    assert row.at == 1767323045
