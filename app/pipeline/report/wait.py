"""Wait time: from the moment a task is due to its first lease.

The row keeps one due time, `available_at`, and a retry or a requeue overwrites it. So the wait is known of a task whose
due time is not after its first lease: it is then the one that the first lease waited for. A task that was accepted with
a due time in the past waits from its acceptance. Of the others the wait is unknown; they are counted, never guessed.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from app.pipeline.report.frames import seconds_between
from app.pipeline.report.summary import counted, percentiles, share


def wait_seconds() -> Column:
    """Seconds from due to first lease, or NULL if the task never started or its first due time was overwritten."""
    due = F.greatest("available_at", "created_at")
    return F.when(F.col("first_leased_at") >= due, seconds_between(due, F.col("first_leased_at")))


def wait_aggregates() -> list[Column]:
    """The wait's percentiles, of how many tasks, and how many were started whose wait is unknown."""
    wait, started = wait_seconds(), F.col("first_leased_at").isNotNull()
    unknown = counted(started & wait.isNull())
    return [
        F.count(wait).alias("waits_known"),
        unknown.alias("waits_unknown"),
        share(unknown, counted(started)).alias("waits_unknown_share"),
        *percentiles(wait, "wait"),
        F.max(wait).alias("wait_max_seconds"),
    ]
