"""How many workers hold the wait that is wanted, by playing the recorded times through with more and fewer of them."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from app.pipeline.advice.findings import Confidence, Figure, QueueKey, QueuePolicy, Target, WaitAt, WorkersAdvice
from app.pipeline.advice.frames import KEY
from app.pipeline.advice.simulation import (
    Demands,
    fewest_workers,
    in_order,
    simulate_waits,
    summarize_waits,
    workers_without_wait,
)
from app.pipeline.advice.wording import count, percent, seconds

# Fewer tasks are no pattern; with fewer than the second number the busiest hour may have been chance.
FEWEST_TASKS = 50
ENOUGH_TASKS = 1_000
# Where this share of the run times is a guess, the answer is one too.
MANY_GUESSED = 0.2
# The waits are told for so many workers more and fewer than advised.
AROUND = 2
# Digits of a wait that stands beside the one that is wanted.
EXACT = 3
SEED = 20240229

PLAN_SCHEMA = (
    "tenant_id string, queue string, tasks long, runs long, guessed long, held_by long, held_overall_by long,"
    " workers long, worst_hour_seconds double, overall_seconds double, mean_seconds double, busy double"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was played through, and what was left out: the window, and the tasks in it of all there are."""

    start: float
    end: float
    all_tasks: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What playing through gave. Without any known run time nothing could be played, and the curve is empty."""

    tasks: int
    runs: int
    # Runs whose time nobody knows, and which were given the time of another.
    guessed: int
    held_by: int
    held_overall_by: int
    curve: tuple[WaitAt, ...]


def plan_each(demands: DataFrame, target: Target) -> dict[QueueKey, Plan]:
    """A plan for each queue, made where its demands are."""

    def plan_rows(asked: pd.DataFrame) -> pd.DataFrame:
        plan = plan_workers(asked, target)
        fields = {name: asked[name].iloc[0] for name in KEY} | {
            name: value for name, value in asdict(plan).items() if name != "curve"
        }
        # A plan without a curve is one row too.
        points = [asdict(point) for point in plan.curve] or [asdict(WaitAt(0, 0.0, 0.0, 0.0, 0.0))]
        return pd.DataFrame([fields | point for point in points])

    plans: dict[QueueKey, Plan] = {}
    for row in demands.groupBy(*KEY).applyInPandas(plan_rows, PLAN_SCHEMA).orderBy(*KEY, "workers").collect():
        key = QueueKey(row.tenant_id, row.queue)
        curve = plans[key].curve if key in plans else ()
        if row.workers:
            curve += (WaitAt(*(row[name] for name in WaitAt.__dataclass_fields__)),)
        plans[key] = Plan(row.tasks, row.runs, row.guessed, row.held_by, row.held_overall_by, curve)
    return plans


def plan_workers(asked: pd.DataFrame, target: Target) -> Plan:
    """The fewest workers that hold the target, for demands (`asked`, `run`, `first`) in any order."""
    run = asked["run"].to_numpy(np.float64)
    unknown = np.isnan(run)
    tasks, guessed = int(asked["first"].sum()), int(unknown.sum())
    if guessed == len(run) or not tasks:
        return Plan(tasks, len(run), guessed, 0, 0, ())
    # Rows come in no order of their own: in one that is always the same, the guesses are too.
    order = np.lexsort((run, asked["asked"].to_numpy(np.float64)))
    run, unknown = run[order], unknown[order]
    run[unknown] = np.random.default_rng(SEED).choice(np.sort(run[~unknown]), guessed)
    demands = in_order(asked["asked"].to_numpy(np.float64)[order], run, asked["first"].to_numpy(np.bool_)[order])
    most = workers_without_wait(demands.due, demands.run)
    tried: dict[int, WaitAt] = {}

    def at(workers: int) -> WaitAt:
        if workers not in tried:
            tried[workers] = wait_at(demands, workers, target.share)
        return tried[workers]

    held_by = fewest_workers(lambda workers: at(workers).worst_hour_seconds <= target.wait_seconds, most)
    overall = fewest_workers(lambda workers: at(workers).overall_seconds <= target.wait_seconds, most)
    around = sorted({overall, *range(max(1, held_by - AROUND), held_by + AROUND + 1)})
    return Plan(tasks, len(run), guessed, held_by, overall, tuple(at(workers) for workers in around))


def wait_at(demands: Demands, workers: int, share: float) -> WaitAt:
    """The waits with so many workers, and how busy they are from the first demand to the last end."""
    waits = simulate_waits(demands.due, demands.run, workers)
    summary = summarize_waits(demands, waits, share)
    lasted = float(np.max(demands.due + waits + demands.run) - demands.due[0])
    busy = float(demands.run.sum()) / (workers * lasted)
    return WaitAt(workers, summary.worst_hour, summary.overall, summary.mean, min(1.0, busy))


def advise_workers(plan: Plan | None, sample: Sample | None, policy: QueuePolicy, target: Target) -> WorkersAdvice:
    """The plan in words, with what it leaves out."""
    if plan is None or sample is None or plan.tasks < FEWEST_TASKS:
        tasks = 0 if plan is None else plan.tasks
        return _none(f"Too few tasks to simulate: {tasks:,} became due, {FEWEST_TASKS} are needed.", target)
    if not plan.curve:
        return _none("No run times are recorded: nothing can be simulated.", target)
    sure = plan.tasks >= ENOUGH_TASKS and plan.guessed <= MANY_GUESSED * plan.runs
    return WorkersAdvice(
        sentence=_sentence(plan, target),
        confidence=Confidence.GOOD if sure else Confidence.LOW,
        evidence=_evidence(plan),
        caveats=tuple(_caveats(plan, sample, policy)),
        target=target,
        workers=plan.held_by,
        overall_workers=plan.held_overall_by,
        curve=plan.curve,
        window_start=datetime.fromtimestamp(sample.start, UTC),
        window_end=datetime.fromtimestamp(sample.end, UTC),
    )


def _point(plan: Plan, workers: int) -> WaitAt:
    return next(point for point in plan.curve if point.workers == workers)


def _sentence(plan: Plan, target: Target) -> str:
    held = _point(plan, plan.held_by)
    workers = count(plan.held_by, "worker leases", "workers lease")
    sentence = (
        f"{workers} {percent(target.share)} of tasks within {seconds(target.wait_seconds)} in every hour"
        f" (the worst: {seconds(held.worst_hour_seconds, EXACT)}), {percent(held.busy)} busy"
    )
    if plan.held_by > 1:
        fewer = _point(plan, plan.held_by - 1)
        sentence += f"; with one less it is {seconds(fewer.worst_hour_seconds, EXACT)}"
    if plan.held_overall_by < plan.held_by:
        sentence += f"; over the whole time taken as one, {plan.held_overall_by:,} would do"
    return f"{sentence}."


def _evidence(plan: Plan) -> tuple[Figure, ...]:
    return (
        Figure("tasks played through", plan.tasks, "tasks"),
        Figure("runs of them", plan.runs, "runs"),
        *(
            Figure(f"wait with {count(point.workers, 'worker', 'workers')}", point.worst_hour_seconds, "s")
            for point in plan.curve
        ),
    )


def _caveats(plan: Plan, sample: Sample, policy: QueuePolicy) -> Iterable[str]:
    yield "A worker is one that holds one lease at a time; tasks are taken in order of their due times."
    if plan.tasks < sample.all_tasks:
        yield f"The busiest {plan.tasks:,} of {sample.all_tasks:,} tasks were played through, in one stretch."
    if plan.guessed:
        yield f"The times of {plan.guessed:,} of {plan.runs:,} runs are not recorded: those of others stand for them."
    if policy.is_limited:
        yield "The queue's own limits of rate or concurrency are not simulated: they may hold tasks back all the same."
    if plan.tasks < ENOUGH_TASKS:
        yield f"{plan.tasks:,} tasks are few: the busiest hour may have been chance."


def _none(sentence: str, target: Target) -> WorkersAdvice:
    return WorkersAdvice(sentence=sentence, confidence=Confidence.NONE, target=target)
