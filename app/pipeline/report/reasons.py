"""Why things failed: failures by the fingerprint of their reason."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.domain.task import Status
from app.pipeline.report.fingerprint import fingerprint
from app.pipeline.report.summary import counted

TOP_REASONS = 20
LONGEST_EXAMPLE = 400


def failures(tasks: DataFrame, attempts: DataFrame) -> DataFrame:
    """Every failed attempt; in queues that logged none, every dead letter instead."""
    columns = ("queue", "task_id", "finished_at", "reason")
    failed = attempts.where(~F.col("success"))
    dead = tasks.where(F.col("status") == Status.DEAD.value)
    unlogged = dead.join(failed.select("queue").distinct(), "queue", "left_anti")
    return failed.select(*columns).unionByName(unlogged.select(*columns))


def failure_reasons(failed: DataFrame) -> DataFrame:
    """Failures by fingerprint, with the queue that has most of them, an example, and when they came."""
    return (
        failed.groupBy(fingerprint(F.col("reason")).alias("reason"))
        .agg(
            F.count("*").alias("failures"),
            _about("task_id").alias("about_tasks"),
            F.mode("queue", deterministic=True).alias("most_in_queue"),
            _about("queue").alias("about_queues"),
            F.min(F.substring("reason", 1, LONGEST_EXAMPLE)).alias("example"),
            F.min("finished_at").alias("first_at"),
            F.max("finished_at").alias("last_at"),
        )
        .orderBy(F.desc("failures"), "reason")
    )


def failures_total(failed: DataFrame) -> DataFrame:
    """One row: how many failures there are, and how many of them gave no reason."""
    return failed.agg(F.count("*").alias("failures"), counted(F.col("reason").isNull()).alias("without_reason"))


def _about(column: str) -> Column:
    """How many different values there are, about: an estimate, but never more than there are failures."""
    return F.least(F.approx_count_distinct(column), F.count("*"))
