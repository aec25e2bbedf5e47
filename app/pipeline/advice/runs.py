"""How long runs take, of a queue: a histogram made by Spark, and what can be read off it."""

import math
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from app.domain.task import Status
from app.pipeline.advice.findings import LogSeen, QueueKey
from app.pipeline.advice.frames import CUT, FAILURE, KEY, LOST, SUCCESS
from app.pipeline.advice.simulation import Seconds

# The run of a task that was done at its first attempt, read off the task itself.
FIRST_TRY = "first_try"
# Bins are so wide, and each keeps the longest run in it: a quantile is never too short, and at most so much too long.
BIN_WIDTH = 0.02
SHORTEST_BIN_SECONDS = 0.001
# With this share of the successes in the log, the log is taken for whole.
WHOLE_LOG_SHARE = 0.9
TAIL = 0.99

SUMMARY_SCHEMA = (
    "tenant_id string, queue string, ended long, lost long, cut long, successes_logged long, failures_logged long,"
    " median double, tail double, tail_is_known boolean, longest double, lost_after double, ended_near long"
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The runs of a queue. Runs that lost their lease or were cut short count as having taken at least so long."""

    ended: int
    lost: int
    cut: int
    successes_logged: int
    failures_logged: int
    # Of the runs that ended by themselves.
    median: float
    longest: float
    # Within this 99 % of the runs end; if that is not known, it is the longest time that any run was seen to last.
    tail: float
    tail_is_known: bool
    # How long the leases lasted that were lost, and how many runs ended in the second half of such a lease.
    lost_after: float
    ended_near: int

    @property
    def runs(self) -> int:
        return self.ended + self.lost + self.cut

    @property
    def lost_share(self) -> float:
        return self.lost / self.runs if self.runs else 0.0


NO_RUNS = RunSummary(0, 0, 0, 0, 0, 0.0, 0.0, 0.0, False, 0.0, 0)


def run_histogram(tasks: DataFrame, attempts: DataFrame) -> DataFrame:
    """How many runs of each outcome took how long, in bins, by queue; the tasks stand in for successes not logged."""
    first_tries = tasks.where(
        # Otherwise the task was requeued, and its first lease was in an earlier life.
        (F.col("status") == Status.DONE.value) & (F.col("attempts") == 1) & (F.col("available") <= F.col("leased"))
    ).select(
        *KEY, F.lit(FIRST_TRY).alias("outcome"), F.greatest(F.lit(0.0), F.col("ended") - F.col("leased")).alias("run")
    )
    runs = attempts.select(*KEY, "outcome", "run").unionByName(first_tries)
    height = F.log(F.greatest(F.col("run"), F.lit(SHORTEST_BIN_SECONDS))) / F.lit(math.log1p(BIN_WIDTH))
    binned = runs.withColumn("bin", F.ceil(height))
    return binned.groupBy(*KEY, "outcome", "bin").agg(F.count("*").alias("runs"), F.max("run").alias("longest"))


def summarize_runs(histogram: DataFrame) -> dict[QueueKey, RunSummary]:
    """One summary for each queue, made where its histogram is."""
    rows = histogram.groupBy(*KEY).applyInPandas(_summary_row, SUMMARY_SCHEMA).collect()
    fields = RunSummary.__dataclass_fields__
    return {QueueKey(row.tenant_id, row.queue): RunSummary(**{name: row[name] for name in fields}) for row in rows}


def log_seen(runs: RunSummary, done: int) -> LogSeen:
    """How much of the attempts is in the log, when so many tasks are done. `off` may also be `failures`, with none."""
    if done == 0:
        return LogSeen.UNKNOWN
    if runs.successes_logged >= WHOLE_LOG_SHARE * done:
        return LogSeen.ALL
    if runs.successes_logged:
        return LogSeen.PARTIAL
    return LogSeen.FAILURES if runs.failures_logged else LogSeen.OFF


def summarize_bins(bins: pd.DataFrame) -> RunSummary:
    """The summary of one queue's bins (`outcome`, `runs`, `longest`)."""
    runs = bins.groupby("outcome")["runs"].sum()
    logged = int(runs.get(SUCCESS, 0))
    chosen = SUCCESS if logged >= WHOLE_LOG_SHARE * runs.get(FIRST_TRY, 0) else FIRST_TRY
    ended = bins[bins["outcome"].isin([chosen, FAILURE])].groupby("longest")["runs"].sum()
    lost = bins[bins["outcome"] == LOST].groupby("longest")["runs"].sum()
    unended = bins[bins["outcome"].isin([LOST, CUT])].groupby("longest")["runs"].sum()
    tail, is_known = tail_seconds(_arrays(ended), _arrays(unended))
    lost_after = weighted_quantile(*_arrays(lost), 0.5)
    near = ended[(ended.index > lost_after / 2) & (ended.index <= lost_after)]
    return RunSummary(
        ended=int(ended.sum()),
        lost=int(lost.sum()),
        cut=int(unended.sum() - lost.sum()),
        successes_logged=logged,
        failures_logged=int(runs.get(FAILURE, 0)) + int(unended.sum()),
        median=weighted_quantile(*_arrays(ended), 0.5),
        longest=float(ended.index.max()) if len(ended) else 0.0,
        tail=tail,
        tail_is_known=is_known,
        lost_after=lost_after,
        ended_near=int(near.sum()),
    )


def tail_seconds(ended: tuple[Seconds, Seconds], unended: tuple[Seconds, Seconds]) -> tuple[float, bool]:
    """Within what time 99 % of the runs end, by Kaplan and Meier: runs that were cut off took at least so long.

    Each side is (times, how many). If too many were cut off to tell, the longest time seen, and False.
    """
    times = np.union1d(ended[0], unended[0])
    ends, cuts = _counts_at(times, ended), _counts_at(times, unended)
    if not len(times):
        return 0.0, False
    # At one instant runs end first, then leases are lost.
    running = np.cumsum((ends + cuts)[::-1])[::-1]
    left = np.cumprod(1.0 - ends / running)
    reached = np.flatnonzero(left <= 1.0 - TAIL + 1e-12)
    return (float(times[reached[0]]), True) if len(reached) else (float(times[-1]), False)


def weighted_quantile(values: Seconds, weights: Seconds, share: float) -> float:
    """The smallest value up to which at least this share of the weight lies; 0 of nothing."""
    if not len(values):
        return 0.0
    order = np.argsort(values)
    heap = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(heap, share * heap[-1] * (1 - 1e-12))])


def _counts_at(times: Seconds, seen: tuple[Seconds, Seconds]) -> Seconds:
    counts = np.zeros(len(times))
    counts[np.searchsorted(times, seen[0])] = seen[1]
    return counts


def _arrays(counts: pd.Series) -> tuple[Seconds, Seconds]:
    return counts.index.to_numpy(np.float64), counts.to_numpy(np.float64)


def _summary_row(bins: pd.DataFrame) -> pd.DataFrame:
    key = {name: bins[name].iloc[0] for name in KEY}
    return pd.DataFrame([key | asdict(summarize_bins(bins))])
