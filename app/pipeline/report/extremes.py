"""Single tasks that stand out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TOP_TASKS = 15
LONGEST_ERROR = 200


def slowest_tasks(attempts: DataFrame, top: int = TOP_TASKS) -> DataFrame:
    """The longest attempts that a worker ended itself, longest first."""
    return (
        attempts.where(~F.col("lost"))
        .select(
            "task_id", "queue", "type", "tenant", "attempt_no", "worker_id", "seconds", "success", "finished_at",
        )
        .orderBy(F.desc("seconds"), F.desc("finished_at"), "task_id")
        .limit(top)
    )  # fmt: skip


def most_retried_tasks(tasks: DataFrame, top: int = TOP_TASKS) -> DataFrame:
    """The tasks that took most attempts and more than one, with what became of them."""
    return (
        tasks.where(F.col("attempts") > 1)
        .select(
            "task_id", "queue", "type", "tenant", "attempts", "status",
            F.substring("reason", 1, LONGEST_ERROR).alias("reason"), "created_at", "finished_at",
        )
        .orderBy(F.desc("attempts"), F.desc("finished_at"), "task_id")
        .limit(top)
    )  # fmt: skip
