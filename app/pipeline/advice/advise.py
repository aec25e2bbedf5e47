"""The advice for every queue that the data knows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from app.pipeline.advice.arrivals import (
    asks_for_worker,
    choose_windows,
    demands_of,
    hourly_load,
    tasks_in_windows,
)
from app.pipeline.advice.delays import advise_backoff, count_delays
from app.pipeline.advice.drain import forecast_drain, unknown_drain
from app.pipeline.advice.findings import (
    Advice,
    Confidence,
    DelayOutcome,
    QueueAdvice,
    QueueKey,
    QueuePolicy,
    Target,
)
from app.pipeline.advice.flows import Flow, count_flows, forecast_each
from app.pipeline.advice.frames import KEY, attempt_rows, task_rows
from app.pipeline.advice.lease import advise_lease
from app.pipeline.advice.rescues import Ending, advise_attempts, count_endings, tasks_done
from app.pipeline.advice.runs import NO_RUNS, RunSummary, log_seen, run_histogram, summarize_runs
from app.pipeline.advice.workers import Plan, Sample, advise_workers, plan_each

Piece = TypeVar("Piece", bound=Advice)

ASSUMED = "The settings of the queue are not known: the defaults are assumed."


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the queues have done, in the schemas of `app.pipeline.tables`; `live` is None without a live database."""

    history: DataFrame
    attempts: DataFrame
    dead: DataFrame
    live: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What Spark made of the records: some rows for each queue, however many tasks there were."""

    keys: tuple[QueueKey, ...]
    runs: Mapping[QueueKey, RunSummary]
    endings: Mapping[QueueKey, list[Ending]]
    delays: Mapping[QueueKey, tuple[DelayOutcome, ...]]
    samples: Mapping[QueueKey, Sample]
    plans: Mapping[QueueKey, Plan]
    # None without a live database.
    flows: Mapping[QueueKey, Flow] | None


def advise(
    recorded: Recorded, policies: Mapping[QueueKey, QueuePolicy], target: Target, now: datetime
) -> list[QueueAdvice]:
    """One `QueueAdvice` for each queue of any of the frames, by tenant and name.

    A queue that `policies` does not name is taken to have the default settings. `now` (aware) is when `live` was read.
    """
    evidence = gather(recorded, target, now)
    return [advise_queue(key, evidence, policies.get(key), target) for key in evidence.keys]


def gather(recorded: Recorded, target: Target, now: datetime) -> Evidence:
    """Aggregates the records; each frame is read once, and only the columns that are needed are kept, on disk."""
    with (
        _kept(task_rows(recorded.history, recorded.dead, recorded.live)) as tasks,
        _kept(attempt_rows(recorded.attempts)) as attempts,
    ):
        asking = tasks.where(asks_for_worker(now.timestamp()))
        with _kept(choose_windows(hourly_load(asking))) as windows:
            demands = demands_of(tasks_in_windows(asking, windows), attempts)
            return Evidence(
                keys=_keys(tasks, attempts),
                runs=summarize_runs(run_histogram(tasks, attempts)),
                endings=count_endings(tasks),
                delays=count_delays(attempts),
                samples=_samples(windows),
                plans=plan_each(demands, target),
                flows=None if recorded.live is None else forecast_each(count_flows(tasks, now.timestamp())),
            )


def advise_queue(key: QueueKey, evidence: Evidence, known: QueuePolicy | None, target: Target) -> QueueAdvice:
    """The advice for one queue."""
    policy = known or QueuePolicy()
    runs, endings = evidence.runs.get(key, NO_RUNS), evidence.endings.get(key, [])
    log = log_seen(runs, tasks_done(endings))
    attempts = advise_attempts(endings, policy)
    lease = advise_lease(runs, policy, log)
    backoff = advise_backoff(evidence.delays.get(key, ()), attempts.rescues, log, policy)
    flows = evidence.flows
    return QueueAdvice(
        key=key,
        policy=policy,
        policy_is_known=known is not None,
        log=log,
        lease=lease if known else _assuming(lease),
        attempts=attempts if known else _assuming(attempts),
        backoff=backoff if known else _assuming(backoff),
        workers=advise_workers(evidence.plans.get(key), evidence.samples.get(key), policy, target),
        drain=unknown_drain() if flows is None else forecast_drain(flows.get(key), policy),
    )


def _assuming(advice: Piece) -> Piece:
    """The same advice, which says what it took for granted."""
    return advice if advice.confidence is Confidence.NONE else replace(advice, caveats=(*advice.caveats, ASSUMED))


def _keys(tasks: DataFrame, attempts: DataFrame) -> tuple[QueueKey, ...]:
    rows = tasks.select(*KEY).unionByName(attempts.select(*KEY)).distinct().collect()
    return tuple(sorted(QueueKey(row.tenant_id, row.queue) for row in rows))


def _samples(windows: DataFrame) -> dict[QueueKey, Sample]:
    return {QueueKey(row.tenant_id, row.queue): Sample(row.start, row.end, row.all_tasks) for row in windows.collect()}


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed once; on disk, so that memory stays flat."""
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()
