"""How many tasks came and left lately, and what that makes of the backlog."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame

from app.domain.task import LIVE_STATUSES, Status
from app.pipeline.advice.findings import QueueKey
from app.pipeline.advice.frames import KEY

Counts = NDArray[np.float64]

# What happened in the last day, in spans of five minutes.
LOOK_BACK_SECONDS = 86_400
SPAN_SECONDS = 300
# Workers were busy all through a span if at both its ends this share of what left in it was waiting, and so many tasks.
BUSY_SHARE = 0.25
BUSY_TASKS = 5
FEWEST_BUSY_SPANS = 6
# Without such spans, the best quarter of them shows at least what the workers can do.
BEST_SPANS = 0.25
# Neighbouring spans are alike, so whole hours are drawn, or a quarter of what there is.
SPANS_IN_BLOCK = 12
FEWEST_BLOCKS = 4
RESAMPLES = 400
RANGE = (0.1, 0.9)
SEED = 20240229

FLOW_SCHEMA = (
    "tenant_id string, queue string, backlog long, later long, spans long, busy_spans long, arrivals double,"
    " left double, capacity double, soonest double, likely double, latest double"
)


@dataclass(frozen=True, slots=True)
class Flow:
    """The backlog of a queue, what comes and what its workers can do in a second, and when it is drained.

    Times are in seconds from now, infinite for never.
    """

    backlog: int
    # Tasks that are due only later.
    later: int
    spans: int
    busy_spans: int
    arrivals: float
    left: float
    capacity: float
    soonest: float
    likely: float
    latest: float


def count_flows(tasks: DataFrame, now: float) -> DataFrame:
    """Tasks that `came` and `left` by queue and span, counted back from now; span -1 has the backlog, -2 the later."""
    since = now - LOOK_BACK_SECONDS
    is_live = F.col("status").isin(*LIVE_STATUSES)
    came = tasks.where((F.col("due") > since) & (F.col("due") <= now)).select(*KEY, _span("due", now), _ones("came"))
    left = tasks.where((F.col("ended") > since) & (F.col("ended") <= now)).select(
        *KEY, _span("ended", now), _ones("left")
    )
    waits = (F.col("available") <= now) | (F.col("status") == Status.LEASED.value)
    stock = tasks.where(is_live).select(*KEY, F.when(waits, -1).otherwise(-2).cast("long").alias("span"), _ones("came"))
    events = came.unionByName(left, allowMissingColumns=True).unionByName(stock, allowMissingColumns=True)
    return events.groupBy(*KEY, "span").agg(
        F.coalesce(F.sum("came"), F.lit(0)).alias("came"), F.coalesce(F.sum("left"), F.lit(0)).alias("left")
    )


def forecast_each(flows: DataFrame) -> dict[QueueKey, Flow]:
    """The flow of each queue, worked out where its spans are."""
    rows = flows.groupBy(*KEY).applyInPandas(_flow_row, FLOW_SCHEMA).collect()
    return {
        QueueKey(row.tenant_id, row.queue): Flow(**{name: row[name] for name in Flow.__dataclass_fields__})
        for row in rows
    }


def flow_of(spans: pd.DataFrame) -> Flow:
    """The flow that one queue's spans (`span`, `came`, `left`) make."""
    counts = spans.set_index("span")
    backlog, later = (int(counts["came"].get(span, 0)) for span in (-1, -2))
    seen = counts[counts.index >= 0]
    # Before the first that was seen to happen, the queue was not there.
    length = int(seen.index.max()) + 1 if len(seen) else 0
    oldest_first = seen.reindex(range(length), fill_value=0).iloc[::-1]
    came, left = (oldest_first[name].to_numpy(np.float64) for name in ("came", "left"))
    busy = busy_spans(came, left, backlog)
    capacity = capacity_of(left, busy)
    arrivals, leaving = (float(part.mean()) / SPAN_SECONDS if length else 0.0 for part in (came, left))
    soonest, latest = drain_range(came, left, busy, backlog)
    likely = drain_seconds(backlog, capacity, arrivals)
    return Flow(
        backlog, later, length, int(busy.sum()), arrivals, leaving, capacity,
        min(soonest, likely), likely, max(latest, likely),
    )  # fmt: skip


def busy_spans(came: Counts, left: Counts, backlog: int) -> NDArray[np.bool_]:
    """In which spans, oldest first, there was always something to do: the backlog is reckoned back from the present."""
    at_end = backlog + np.append(np.cumsum((left - came)[::-1])[::-1][1:], 0.0) if len(came) else np.array([])
    at_start = at_end - came + left
    waiting = np.minimum(at_start, at_end)
    return np.asarray((waiting >= BUSY_TASKS) & (waiting >= BUSY_SHARE * left), dtype=np.bool_)


def capacity_of(left: Counts, busy: NDArray[np.bool_]) -> float:
    """What the workers can finish in a second: seen when they were busy all along, else at least in the best spans."""
    if not len(left):
        return 0.0
    if busy.sum() >= min(FEWEST_BUSY_SPANS, len(left)):
        return float(left[busy].mean()) / SPAN_SECONDS
    best = np.sort(left)[-max(1, round(len(left) * BEST_SPANS)) :]
    return float(best.mean()) / SPAN_SECONDS


def drain_seconds(backlog: int, capacity: float, arrivals: float) -> float:
    """How long the backlog lasts; infinite if as much arrives as can be done."""
    if backlog == 0:
        return 0.0
    return backlog / (capacity - arrivals) if capacity > arrivals else np.inf


def drain_range(came: Counts, left: Counts, busy: NDArray[np.bool_], backlog: int) -> tuple[float, float]:
    """The range in which four of five days like this one would end the backlog, by drawing its hours anew."""
    if not len(came):
        return (0.0, 0.0) if backlog == 0 else (np.inf, np.inf)
    rng = np.random.default_rng(SEED)
    block = min(SPANS_IN_BLOCK, max(1, len(came) // FEWEST_BLOCKS))
    blocks = -(-len(came) // block)
    starts = rng.integers(0, len(came) - block + 1, (RESAMPLES, blocks))
    draws = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)
    drained = [
        drain_seconds(backlog, capacity_of(left[draw], busy[draw]), float(came[draw].mean()) / SPAN_SECONDS)
        for draw in draws
    ]
    return _range_of(drained)


def _range_of(values: Sequence[float]) -> tuple[float, float]:
    # Values that were seen, since nothing lies between a number and infinity.
    low, high = np.quantile(np.array(values), RANGE, method="inverted_cdf").tolist()
    return low, high


def _span(instant: str, now: float) -> Column:
    return F.floor((F.lit(now) - F.col(instant)) / SPAN_SECONDS).alias("span")


def _ones(name: str) -> Column:
    return F.lit(1).cast("long").alias(name)


def _flow_row(spans: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame([{name: spans[name].iloc[0] for name in KEY} | asdict(flow_of(spans))])
