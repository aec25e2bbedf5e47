"""A queue that is first come, first served, with some number of workers, played through on recorded times.

The recursion is that of Kiefer and Wolfowitz: each task starts when it is due or when the first worker is free,
whichever is later. It is about workers alone: priorities and limits of the queue are not in it.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]

# The database's clock ticks in microseconds: no run is shorter.
SHORTEST_RUN_SECONDS = 1e-6
HOUR_SECONDS = 3600.0
# An hour with fewer tasks says nothing about a quantile of its own.
FEWEST_IN_HOUR = 20


@dataclass(frozen=True, slots=True)
class Demands:
    """What asks for a worker, in order of `due`, and for how long; `first` are the first attempts of tasks."""

    due: Seconds
    run: Seconds
    first: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Waits:
    """How long first attempts waited: in the worst hour and overall at the wanted share, and on average."""

    worst_hour: float
    overall: float
    mean: float


def in_order(due: Seconds, run: Seconds, first: NDArray[np.bool_]) -> Demands:
    """Demands sorted by their due times; a run that ended before it began took no time."""
    order = np.argsort(due, kind="stable")
    return Demands(due[order], np.maximum(run[order], SHORTEST_RUN_SECONDS), first[order])


def simulate_waits(due: Seconds, run: Seconds, workers: int) -> Seconds:
    """How long each task waits for a worker; `due` ascends."""
    free_at = [-np.inf] * min(workers, max(1, len(due)))
    waits = []
    for due_at, run_seconds in zip(due.tolist(), run.tolist(), strict=True):
        starts_at = max(due_at, free_at[0])
        heapq.heapreplace(free_at, starts_at + run_seconds)
        waits.append(starts_at - due_at)
    return np.array(waits, dtype=np.float64)


def workers_without_wait(due: Seconds, run: Seconds) -> int:
    """With how many workers nobody waits: the most runs that are under way at once, if each starts when it is due."""
    if not len(due):
        return 1
    ended = np.searchsorted(np.sort(due + run), due, side="right")
    return int(max(1, np.max(np.arange(1, len(due) + 1) - ended)))


def fewest_workers(holds: Callable[[int], bool], most: int) -> int:
    """The fewest workers that hold, by bisection; more workers never make anybody wait longer, and `most` do hold."""
    too_few, enough = 0, most
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if holds(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def quantile(values: Seconds, share: float) -> float:
    """The smallest value that at least this share of the values does not exceed; 0 of nothing."""
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else 0.0


def summarize_waits(demands: Demands, waits: Seconds, share: float) -> Waits:
    """The waits of first attempts; without an hour of enough tasks the worst hour is the whole."""
    due, waited = demands.due[demands.first], waits[demands.first]
    overall = quantile(waited, share)
    # The demands are in order, so each hour is one slice.
    hours, starts, counts = np.unique(due // HOUR_SECONDS, return_index=True, return_counts=True)
    slices = (slice(starts[i], starts[i] + counts[i]) for i in range(len(hours)) if counts[i] >= FEWEST_IN_HOUR)
    worst = max((quantile(waited[part], share) for part in slices), default=overall)
    return Waits(worst, overall, float(waited.mean()) if len(waited) else 0.0)
