"""What the advice needs of the recorded tables, and nothing more: no payload is ever carried along."""

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from app.domain.task import Status
from app.domain.transitions import CANCELLED_WHILE_LEASED, LEASE_EXPIRED

KEY = ("tenant_id", "queue")
# A loss of a lease, and a run that somebody else cut short, say only that the run would have taken longer.
LOST = "lost"
CUT = "cut"
SUCCESS = "success"
FAILURE = "failure"


def epoch(instant: str) -> Column:
    """An instant as seconds since 1970, to the microsecond."""
    return F.unix_micros(F.col(instant)) / F.lit(1e6)


def task_rows(history: DataFrame, dead: DataFrame, live: DataFrame | None) -> DataFrame:
    """Every task that is known, once for each time it ended: times as seconds since 1970.

    `due` is when the task was first due, as far as it can be known: a nack puts a new time over the old one, and then
    the creation stands for it. A task that was requeued counts from its requeue.
    """
    frames = [
        _narrow(history, "task_id", F.col("status"), "finished_at"),
        _narrow(dead, "task_id", F.lit(Status.DEAD.value), "failed_at"),
    ]
    if live is not None:
        frames.append(_narrow(live, "id", F.col("status"), None))
    rows = reduce(DataFrame.unionByName, frames)
    kept = F.col("leased").isNull() | (F.col("available") <= F.col("leased")) | (F.col("attempts") <= 1)
    return rows.withColumn("due", F.when(kept, F.col("available")).otherwise(F.col("created")))


def attempt_rows(attempts: DataFrame) -> DataFrame:
    """Every attempt of the log: what became of it, and how long it ran, at least 0 seconds."""
    return attempts.select(
        *KEY,
        "task_id",
        "attempt_no",
        epoch("started_at").alias("started"),
        epoch("finished_at").alias("finished"),
        F.greatest(F.lit(0.0), epoch("finished_at") - epoch("started_at")).alias("run"),
        F.when(F.col("success"), SUCCESS)
        .when(F.col("reason") == LEASE_EXPIRED, LOST)
        .when(F.col("reason") == CANCELLED_WHILE_LEASED, CUT)
        .otherwise(FAILURE)
        .alias("outcome"),
    )


def _narrow(tasks: DataFrame, identity: str, status: Column, ended_at: str | None) -> DataFrame:
    return tasks.select(
        *KEY,
        F.col(identity).alias("task_id"),
        status.alias("status"),
        F.col("attempts"),
        F.col("max_attempts"),
        epoch("created_at").alias("created"),
        epoch("available_at").alias("available"),
        epoch("first_leased_at").alias("leased"),
        (F.lit(None).cast("double") if ended_at is None else epoch(ended_at)).alias("ended"),
    )
