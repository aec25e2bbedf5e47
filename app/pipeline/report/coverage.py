"""What the attempt log holds of each queue, told from the data: done tasks against attempts that succeeded."""

from enum import StrEnum

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.domain.task import Status
from app.pipeline.report.summary import counted, share, total

# The log may lose a row, but never blocks a settle: a few missing ones are no other setting.
NEARLY_ALL = 0.99


class Logged(StrEnum):
    """Which attempts of a queue are in the log."""

    ALL = "all"
    # Of some time all, of some not; or rows were lost.
    PART = "part"
    FAILURES = "failures"
    OFF = "off"
    # Tasks were done at the first attempt, and no attempt is there: the log was off, or kept failures alone.
    NO_SUCCESS = "no success"
    # No task was done, none failed: nothing that a log could hold.
    NOTHING = "nothing"

    @property
    def tells_successes(self) -> bool:
        return self in (Logged.ALL, Logged.PART, Logged.NOTHING)


def attempt_log_coverage(tasks: DataFrame, attempts: DataFrame) -> DataFrame:
    """By queue: what ended, what is logged of it, and so which attempts the log holds."""
    counted_tasks = tasks.groupBy("queue").agg(
        counted(F.col("status") == Status.DONE.value).alias("done"), total(_failed_attempts()).alias("failed_attempts")
    )
    counted_attempts = attempts.groupBy("queue").agg(
        counted(F.col("success")).alias("logged_successes"), counted(~F.col("success")).alias("logged_failures")
    )
    both = counted_tasks.join(counted_attempts, "queue", "full_outer").na.fill(0)
    return both.select(
        "*", share(F.col("logged_successes"), F.col("done")).alias("logged_share"), _logged().alias("logged")
    ).orderBy("queue")


def marked(attempts: DataFrame, coverage: pa.Table) -> DataFrame:
    """The same attempts; those of queues that logged failures alone are not representative."""
    telling = [row["queue"] for row in coverage.to_pylist() if Logged(row["logged"]).tells_successes]
    return attempts.withColumn("representative", F.col("queue").isin(telling))


def _failed_attempts() -> Column:
    """How many attempts of a task must have failed; after a requeue the row counts from anew."""
    done = F.col("status") == Status.DONE.value
    return F.when(done, F.col("attempts") - 1).otherwise(F.col("attempts"))


def _logged() -> Column:
    done, successes, failures = F.col("done"), F.col("logged_successes"), F.col("logged_failures")
    nothing_logged, nothing_failed = successes + failures == 0, F.col("failed_attempts") == 0
    return (
        F.when(nothing_logged & (done == 0) & nothing_failed, Logged.NOTHING.value)
        .when(nothing_logged & nothing_failed, Logged.NO_SUCCESS.value)
        .when(nothing_logged, Logged.OFF.value)
        # Where nothing was done, there is no success that could be missing.
        .when(successes >= done * NEARLY_ALL, Logged.ALL.value)
        .when(successes > 0, Logged.PART.value)
        .otherwise(Logged.FAILURES.value)
    )
