"""Run time, what retries cost, and lost leases: all that the attempt log tells."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from app.pipeline.report.summary import counted, percentiles, share, total


def run_seconds() -> Column:
    """Seconds from lease to settle, or NULL where they are no run time, or not a fair sample of them.

    A lost lease ends when its lease did, whatever its worker did.
    """
    return F.when(~F.col("lost") & F.col("representative"), F.col("seconds"))


def run_time_aggregates() -> list[Column]:
    """The run time's percentiles, and of how many attempts."""
    run = run_seconds()
    return [F.count(run).alias("runs"), *percentiles(run, "run"), F.max(run).alias("run_max_seconds")]


def attempt_aggregates() -> list[Column]:
    """Attempts by how they ended, and the seconds they held a lease; those that failed are what retries cost."""
    failed, lost, seconds, fair = ~F.col("success"), F.col("lost"), F.col("seconds"), F.col("representative")
    return [
        F.count("*").alias("attempts"),
        counted(F.col("success")).alias("succeeded"),
        counted(failed).alias("failed"),
        counted(lost).alias("lost"),
        share(counted(lost & fair), counted(fair)).alias("lost_share"),
        total(seconds).alias("seconds"),
        total(F.when(failed, seconds)).alias("failed_seconds"),
        share(total(F.when(failed & fair, seconds)), total(F.when(fair, seconds))).alias("failed_seconds_share"),
        total(F.when(lost, seconds)).alias("lost_seconds"),
    ]
