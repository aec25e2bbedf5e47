"""Which tasks the simulation plays through: the busiest stretch of each queue, and what it asked of the workers."""

from collections.abc import Sequence

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.window import Window

from app.domain.task import LIVE_STATUSES, Status
from app.pipeline.advice.frames import KEY, SUCCESS

# So many runs of a queue are played through at most: some seconds of work, some megabytes of memory.
MOST_RUNS = 50_000
HOUR_SECONDS = 3600
WINDOW_SCHEMA = "tenant_id string, queue string, start double, end double, all_tasks long"
TASK = (*KEY, "task_id", "created")


def asks_for_worker(now: float) -> Column:
    """Whether a worker was given the task, or it waits for one now; what expired before that asks nobody."""
    waits = F.col("status").isin(*LIVE_STATUSES) & (F.col("available") <= F.lit(now))
    return F.col("leased").isNotNull() | waits


def hourly_load(tasks: DataFrame) -> DataFrame:
    """How many tasks became due in each hour, and how many runs they took, by queue."""
    return tasks.groupBy(*KEY, F.floor(F.col("due") / HOUR_SECONDS).alias("hour")).agg(
        F.count("*").alias("tasks"), F.sum(F.greatest("attempts", F.lit(1))).alias("runs")
    )


def choose_window(runs: Sequence[int], most: int) -> tuple[int, int]:
    """The positions (first, last) of the hours around the one of the most runs that hold at most `most` runs.

    The hours before count first: what they leave undone is carried into the busiest one.
    """
    first = last = max(range(len(runs)), key=lambda position: runs[position])
    held = runs[first]
    while True:
        if first > 0 and held + runs[first - 1] <= most:
            first -= 1
            held += runs[first]
        elif last < len(runs) - 1 and held + runs[last + 1] <= most:
            last += 1
            held += runs[last]
        else:
            return first, last


def choose_windows(load: DataFrame, most: int = MOST_RUNS) -> DataFrame:
    """The stretch of each queue that is played through, as seconds since 1970."""

    def window_row(hourly: pd.DataFrame) -> pd.DataFrame:
        hourly = hourly.sort_values("hour")
        hours = hourly["hour"].tolist()
        first, last = choose_window(hourly["runs"].tolist(), most)
        row = {name: hourly[name].iloc[0] for name in KEY}
        row |= {"start": float(hours[first] * HOUR_SECONDS), "end": float((hours[last] + 1) * HOUR_SECONDS)}
        return pd.DataFrame([row | {"all_tasks": hourly["tasks"].sum()}])

    return load.groupBy(*KEY).applyInPandas(window_row, WINDOW_SCHEMA)


def tasks_in_windows(tasks: DataFrame, windows: DataFrame, most: int = MOST_RUNS) -> DataFrame:
    """The tasks that became due in the window of their queue; of an hour that alone is too much, the first."""
    inside = tasks.join(F.broadcast(windows), list(KEY)).where(
        (F.col("due") >= F.col("start")) & (F.col("due") < F.col("end"))
    )
    so_far = Window.partitionBy(*KEY).orderBy("due", "task_id", "created").rowsBetween(Window.unboundedPreceding, 0)
    runs = F.sum(F.greatest("attempts", F.lit(1))).over(so_far)
    return inside.withColumn("runs_so_far", runs).where(F.col("runs_so_far") <= most).drop("runs_so_far")


def demands_of(tasks: DataFrame, attempts: DataFrame) -> DataFrame:
    """What the tasks asked of workers: when (`asked`), for how long (`run`, NULL if nobody knows), and `first` or not.

    A first attempt asks when its task is due, a later one when it was seen to start. A success that is not in the log
    asks too, and so does a task of which the log knows nothing, perhaps because it waits for its first worker.
    """
    logged = attempts.select(
        *KEY, "task_id", "attempt_no", "started", F.col("run").alias("logged_run"), F.col("outcome")
    )
    both = tasks.join(logged, [*KEY, "task_id"], "left").withColumn(
        "is_of_task",
        F.col("started").isNotNull()
        & (F.col("started") >= F.col("created"))
        & (F.col("ended").isNull() | (F.col("started") <= F.col("ended"))),
    )
    of_task = Window.partitionBy(*TASK)
    both = both.withColumn("logged", F.count(F.when(F.col("is_of_task"), 1)).over(of_task)).withColumn(
        "success_logged", F.max(F.col("is_of_task") & (F.col("outcome") == SUCCESS)).over(of_task)
    )
    return _logged_demands(both).unionByName(_other_demands(both))


def _logged_demands(both: DataFrame) -> DataFrame:
    first = F.col("attempt_no") == 1
    return both.where("is_of_task").select(
        *KEY,
        F.when(first, F.least("due", "started")).otherwise(F.col("started")).alias("asked"),
        F.col("logged_run").alias("run"),
        first.alias("first"),
    )


def _other_demands(both: DataFrame) -> DataFrame:
    done = (F.col("status") == Status.DONE.value) & ~F.coalesce("success_logged", F.lit(False))
    is_only = (F.col("attempts") <= 1) & (F.col("available") <= F.col("leased"))
    return (
        both.where(done | (F.col("logged") == 0))
        .dropDuplicates(list(TASK))
        .select(
            *KEY,
            F.when(F.col("logged") == 0, F.col("due")).otherwise(F.col("available")).alias("asked"),
            F.when(done & is_only, F.greatest(F.lit(0.0), F.col("ended") - F.col("leased"))).alias("run"),
            (F.col("logged") == 0).alias("first"),
        )
    )
