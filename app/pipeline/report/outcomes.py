"""What became of the tasks: throughput, success and failure, and in how many attempts."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.domain.task import Status
from app.pipeline.report.buckets import bucket
from app.pipeline.report.summary import counted, share, total

FINAL_STATUSES = (Status.DONE, Status.DEAD, Status.EXPIRED, Status.CANCELLED)
# The last column of the histogram holds all that took so many attempts or more.
MOST_ATTEMPTS = 10


def outcome_aggregates() -> list[Column]:
    """Finished tasks by outcome. The success rate is of those that were decided: done against dead."""
    by_status = [counted(F.col("status") == status.value).alias(status.value) for status in FINAL_STATUSES]
    done, dead = (counted(F.col("status") == status.value) for status in (Status.DONE, Status.DEAD))
    return [
        F.count("*").alias("tasks"),
        *by_status,
        share(done, done + dead).alias("success_rate"),
        counted(F.col("attempts") > 1).alias("retried"),
        counted(F.col("first_leased_at").isNull()).alias("never_started"),
        total(F.col("payload_bytes")).alias("payload_bytes"),
    ]


def attempts_histogram(tasks: DataFrame, most: int = MOST_ATTEMPTS) -> DataFrame:
    """How many tasks ended after so many attempts, well or not; `most` stands for that many or more."""
    return (
        tasks.where(F.col("status").isin(Status.DONE.value, Status.DEAD.value))
        .groupBy(F.least("attempts", F.lit(most)).alias("attempts"))
        .agg(
            counted(F.col("status") == Status.DONE.value).alias("done"),
            counted(F.col("status") == Status.DEAD.value).alias("dead"),
        )
        .orderBy("attempts")
    )


def throughput_by_queue_and_hour(tasks: DataFrame, width_seconds: int) -> DataFrame:
    """Finished tasks of each queue in each bucket of time."""
    return (
        tasks.groupBy("queue", bucket("finished_at", width_seconds).alias("hour"))
        .agg(F.count("*").alias("tasks"), counted(F.col("status") == Status.DEAD.value).alias("dead"))
        .orderBy("queue", "hour")
    )


def rhythm(tasks: DataFrame) -> DataFrame:
    """Finished tasks by weekday (1 is Monday) and hour of the day, UTC."""
    return (
        tasks.groupBy((F.weekday("finished_at") + 1).alias("weekday"), F.hour("finished_at").alias("hour_of_day"))
        .agg(F.count("*").alias("tasks"), counted(F.col("status") == Status.DEAD.value).alias("dead"))
        .orderBy("weekday", "hour_of_day")
    )
