"""How many workers are advised, and what is said about it."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from app.pipeline.advice.arrivals import choose_window
from app.pipeline.advice.findings import Confidence, QueuePolicy, Target
from app.pipeline.advice.simulation import in_order
from app.pipeline.advice.workers import Plan, Sample, advise_workers, plan_workers, wait_at

TARGET = Target(wait_seconds=5.0, share=0.95)
SAMPLE = Sample(start=0.0, end=3600.0, all_tasks=2_000)


def asked(due: object, run: object, first: object = True) -> pd.DataFrame:
    frame = pd.DataFrame({"asked": due, "run": run})
    frame["first"] = first
    return frame


def steady(tasks: int = 2_000, rate: float = 1.0, run: float = 2.5, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return asked(np.cumsum(rng.exponential(1 / rate, tasks)), rng.exponential(run, tasks))


def test_the_plan_holds_the_target_and_one_worker_less_does_not() -> None:
    plan = plan_workers(steady(), TARGET)
    waits = {point.workers: point for point in plan.curve}
    assert waits[plan.held_by].worst_hour_seconds <= 5.0 < waits[plan.held_by - 1].worst_hour_seconds
    assert list(waits) == list(range(max(1, plan.held_by - 2), plan.held_by + 3))
    # 2.5 Erlang need three workers at least.
    assert 3 <= plan.held_by <= 5
    assert (plan.tasks, plan.runs, plan.guessed) == (2_000, 2_000, 0)


@pytest.mark.parametrize("seed", range(15))
def test_a_stricter_target_never_takes_fewer_workers(seed: int) -> None:
    demands = steady(tasks=400, seed=seed)
    by_wait = [plan_workers(demands, Target(wait, 0.95)).held_by for wait in (0.0, 1.0, 5.0, 60.0)]
    by_share = [plan_workers(demands, Target(5.0, share)).held_by for share in (0.99, 0.9, 0.5)]
    assert by_wait == sorted(by_wait, reverse=True)
    assert by_share == sorted(by_share, reverse=True)


def test_more_workers_never_wait_longer_in_the_curve() -> None:
    curve = plan_workers(steady(run=20.0), TARGET).curve
    for waits in ([p.worst_hour_seconds for p in curve], [p.mean_seconds for p in curve], [p.busy for p in curve]):
        assert waits == sorted(waits, reverse=True)


def test_the_busy_hour_decides_and_the_whole_is_told_beside_it() -> None:
    quiet = np.arange(0, 36_000, 10.0)
    rush = 36_000 + np.arange(0, 100, 1.0)
    plan = plan_workers(asked(np.concatenate([quiet, rush]), 5.0), TARGET)
    assert (plan.held_by, plan.held_overall_by) == (5, 1)
    sentence = advise_workers(plan, SAMPLE, QueuePolicy(), TARGET).sentence
    assert sentence.startswith("5 workers lease 95 % of tasks within 5 s in every hour")
    assert sentence.endswith("over the whole time taken as one, 1 would do.")


def test_unknown_run_times_are_drawn_from_the_known_and_always_the_same() -> None:
    demands = steady()
    demands.loc[::3, "run"] = np.nan
    plan = plan_workers(demands, TARGET)
    assert plan.guessed == len(demands.loc[::3])
    assert plan_workers(demands.sample(frac=1.0, random_state=5), TARGET) == plan
    advice = advise_workers(plan, SAMPLE, QueuePolicy(), TARGET)
    assert advice.confidence is Confidence.LOW
    assert any("are not recorded" in caveat for caveat in advice.caveats)


@pytest.mark.parametrize("demands", [asked([1.0] * 60, np.nan), asked([1.0] * 60, 2.0, first=False)])
def test_nothing_to_play_through_is_said(demands: pd.DataFrame) -> None:
    plan = plan_workers(demands, TARGET)
    assert plan.curve == ()
    advice = advise_workers(plan, SAMPLE, QueuePolicy(), TARGET)
    assert (advice.workers, advice.confidence) == (None, Confidence.NONE)


@pytest.mark.parametrize("plan", [None, plan_workers(steady(tasks=49), TARGET), plan_workers(steady(tasks=1), TARGET)])
def test_too_few_tasks_get_no_advice(plan: Plan | None) -> None:
    advice = advise_workers(plan, SAMPLE, QueuePolicy(), TARGET)
    assert (advice.workers, advice.confidence) == (None, Confidence.NONE)
    assert advice.sentence.startswith("Too few tasks to simulate")


def test_runs_of_no_length_need_one_worker() -> None:
    assert plan_workers(asked([1.0] * 100, 0.0), TARGET).held_by == 1


def test_what_is_left_out_is_said() -> None:
    plan = plan_workers(steady(), TARGET)
    advice = advise_workers(plan, replace(SAMPLE, all_tasks=9_000), QueuePolicy(rate_per_second=3.0), TARGET)
    assert "The busiest 2,000 of 9,000 tasks were played through, in one stretch." in advice.caveats
    assert any("limits of rate or concurrency" in caveat for caveat in advice.caveats)
    assert advice.window_end == datetime(1970, 1, 1, 1, tzinfo=UTC)
    assert advice.confidence is Confidence.GOOD
    plain = advise_workers(plan, SAMPLE, QueuePolicy(), TARGET)
    assert len(plain.caveats) == 1


def test_busy_is_the_share_of_time_at_work() -> None:
    demands = in_order(np.array([0.0, 10.0]), np.array([5.0, 5.0]), np.array([True, True]))
    assert wait_at(demands, 1, 0.95).busy == pytest.approx(10 / 15)
    assert wait_at(demands, 2, 0.95).busy == pytest.approx(10 / 30)


def test_the_window_is_all_if_that_is_not_too_much() -> None:
    assert choose_window([5, 9, 5], most=19) == (0, 2)


def test_the_window_lies_around_the_busiest_hour_and_before_it_first() -> None:
    assert choose_window([1, 1, 9, 1, 1], most=10) == (1, 2)
    assert choose_window([1, 1, 9, 1, 1], most=12) == (0, 3)
    assert choose_window([1, 8, 9, 1, 1], most=12) == (2, 4)
    assert choose_window([99, 5], most=20) == (0, 0)


@pytest.mark.parametrize("target", [(-1.0, 0.95), (float("nan"), 0.95), (5.0, 0.0), (5.0, 1.0)])
def test_a_target_that_is_none_is_refused(target: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="a target wait"):
        Target(*target)
