"""What is live now, by queue."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.domain.task import Status
from app.pipeline.report.frames import seconds_between
from app.pipeline.report.summary import counted


def backlog_by_queue(live: DataFrame, now: datetime) -> DataFrame:
    """Live tasks by status, and for how long the oldest that is due has waited. What time has changed counts as it is.

    A task that is scheduled and due is ready, and so is one whose lease is over: the next reserve gets them.
    """
    instant = F.lit(now)
    leased = (F.col("status") == Status.LEASED.value) & (F.col("lease_until") > instant)
    ready = ~leased & (F.col("available_at") <= instant)
    return (
        live.groupBy("queue")
        .agg(
            counted(ready).alias("ready"),
            counted(~leased & ~ready).alias("scheduled"),
            counted(leased).alias("leased"),
            F.max(F.when(ready, seconds_between("available_at", instant))).alias("oldest_ready_seconds"),
            F.min(F.when(~leased & ~ready, F.col("available_at"))).alias("next_at"),
        )
        .orderBy(F.desc("ready"), "queue")
    )
