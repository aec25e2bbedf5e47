"""The two frames that every figure is made from: finished tasks, and ended attempts; narrow, without payloads."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.domain.task import Status
from app.domain.transitions import LEASE_EXPIRED

TASK_COLUMNS = (
    "queue", "type", "tenant_id", "task_id", "attempts", "created_at", "available_at", "first_leased_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Period:
    """What was asked for: what ended from `since` on and before `until`; None is open."""

    since: datetime | None = None
    until: datetime | None = None


def united(lake: DataFrame, live: DataFrame | None, ended_at: str) -> DataFrame:
    """The rows of both, each once: what is archived and not pruned yet is in both."""
    if live is None:
        return lake
    key = ["id", ended_at]
    return lake.unionByName(live.join(lake.select(*key), key, "left_anti").select(*lake.columns))


def finished_tasks(history: DataFrame, dlq: DataFrame) -> DataFrame:
    """Every task that came to an end, a row each; a dead letter is one of status `dead`."""
    ended = history.select(
        *TASK_COLUMNS, "status", "finished_at", F.lit(None).cast("string").alias("reason"), _payload_bytes()
    )
    dead = dlq.select(
        *TASK_COLUMNS,
        F.lit(Status.DEAD.value).alias("status"),
        F.col("failed_at").alias("finished_at"),
        "reason",
        _payload_bytes(),
    )
    return ended.unionByName(dead).withColumnRenamed("tenant_id", "tenant")


def ended_attempts(attempts: DataFrame) -> DataFrame:
    """Every logged attempt, how long it held its lease, and whether it lost it.

    `representative` says that those that succeeded are logged beside it: only then shares and run times can be told.
    """
    return attempts.select(
        "queue",
        "type",
        F.col("tenant_id").alias("tenant"),
        "task_id",
        "attempt_no",
        "worker_id",
        "finished_at",
        "success",
        "reason",
        # A clock that was set back makes no time of less than nothing.
        F.greatest(seconds_between("started_at", "finished_at"), F.lit(0.0)).alias("seconds"),
        (~F.col("success") & F.col("reason").eqNullSafe(LEASE_EXPIRED)).alias("lost"),
        F.lit(True).alias("representative"),
    )


def within(frame: DataFrame, period: Period, ended_at: str) -> DataFrame:
    """What ended in the period."""
    if period.since is not None:
        frame = frame.where(F.col(ended_at) >= F.lit(period.since))
    if period.until is not None:
        frame = frame.where(F.col(ended_at) < F.lit(period.until))
    return frame


def seconds_between(start: str | Column, end: str | Column) -> Column:
    """Seconds from one instant to the other, with microseconds."""
    return (F.unix_micros(_column(end)) - F.unix_micros(_column(start))) / F.lit(1e6)


def _column(given: str | Column) -> Column:
    return F.col(given) if isinstance(given, str) else given


def _payload_bytes() -> Column:
    return F.length("payload").cast("long").alias("payload_bytes")
