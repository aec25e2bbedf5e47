"""The simulation against what queueing theory says, and against what must hold for any times at all."""

import math
from itertools import pairwise

import numpy as np
import pytest

from app.pipeline.advice.simulation import (
    Demands,
    Seconds,
    fewest_workers,
    in_order,
    quantile,
    simulate_waits,
    summarize_waits,
    workers_without_wait,
)

# Enough for the widest case, 20 workers busy for nine tenths of their time: about 4 % of standard error.
TASKS = 1_000_000
# Successive waits depend on each other, so the error is judged by the means of long batches.
BATCHES = 20
# With 19 degrees of freedom, chance alone is so far off in one case of 1,000; the seeds are fixed.
STANDARD_ERRORS = 4.0


def erlang_c(workers: int, load: float) -> float:
    """The share of tasks that wait in M/M/c, at an offered load in Erlang."""
    served = sum(load**k / math.factorial(k) for k in range(workers))
    waiting = load**workers / math.factorial(workers) * workers / (workers - load)
    return waiting / (served + waiting)


def poisson_arrivals(rng: np.random.Generator, rate: float, tasks: int = TASKS) -> Seconds:
    return np.cumsum(rng.exponential(1 / rate, tasks))


def assert_mean(values: Seconds, expected: float) -> None:
    """The mean is what theory says, within the error that the batches' means show."""
    means = values.reshape(BATCHES, -1).mean(axis=1)
    error = float(means.std(ddof=1)) / math.sqrt(BATCHES)
    assert abs(float(means.mean()) - expected) < STANDARD_ERRORS * error
    # An error so wide that anything fits would test nothing.
    assert error < 0.05 * expected


@pytest.mark.parametrize(("workers", "busy"), [(1, 0.5), (1, 0.7), (2, 0.6), (5, 0.8), (20, 0.9)])
def test_waits_of_m_m_c_are_those_of_erlang(workers: int, busy: float) -> None:
    rng = np.random.default_rng(workers)
    load = workers * busy
    due, run = poisson_arrivals(rng, rate=load), rng.exponential(1.0, TASKS)
    waits = simulate_waits(due, run, workers)
    waiting = erlang_c(workers, load)
    assert_mean((waits > 0).astype(float), waiting)
    assert_mean(waits, waiting / (workers - load))


@pytest.mark.parametrize("busy", [0.3, 0.5, 0.8])
def test_waits_of_m_d_1_are_those_of_pollaczek_and_khinchine(busy: float) -> None:
    due = poisson_arrivals(np.random.default_rng(7), rate=busy)
    waits = simulate_waits(due, np.ones(TASKS), workers=1)
    assert_mean(waits, busy / (2 * (1 - busy)))


def test_waits_of_a_few_tasks_by_hand() -> None:
    due, run = np.array([0.0, 1.0, 2.0, 10.0]), np.array([5.0, 4.0, 1.0, 1.0])
    assert simulate_waits(due, run, 1).tolist() == [0.0, 4.0, 7.0, 0.0]
    assert simulate_waits(due, run, 2).tolist() == [0.0, 0.0, 3.0, 0.0]
    assert simulate_waits(due, run, 3).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert workers_without_wait(due, run) == 3
    # A worker that is free at the very moment can take the next.
    assert workers_without_wait(np.array([0.0, 1.0, 2.0]), np.ones(3)) == 1


def test_no_task_and_more_workers_than_tasks() -> None:
    nothing = np.array([], dtype=np.float64)
    assert simulate_waits(nothing, nothing, 3).tolist() == []
    assert workers_without_wait(nothing, nothing) == 1
    assert simulate_waits(np.array([1.0]), np.array([2.0]), 1_000_000).tolist() == [0.0]


def random_demands(seed: int) -> Demands:
    """Bursts, ties, zero-length runs and heavy tails, as they come."""
    rng = np.random.default_rng(seed)
    tasks = int(rng.integers(1, 300))
    due = np.round(rng.exponential(rng.choice([0.01, 0.5, 3.0]), tasks).cumsum(), int(rng.integers(0, 4)))
    run = rng.pareto(1.1, tasks) * (rng.random(tasks) > 0.2)
    return in_order(rng.permutation(due), run, rng.random(tasks) > 0.3)


@pytest.mark.parametrize("seed", range(40))
def test_no_task_ever_waits_longer_with_more_workers(seed: int) -> None:
    demands = random_demands(seed)
    waits = [simulate_waits(demands.due, demands.run, workers) for workers in range(1, 12)]
    for fewer, more in pairwise(waits):
        assert np.all(more <= fewer + 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_one_worker_less_than_nobody_waits_with_makes_somebody_wait(seed: int) -> None:
    demands = random_demands(seed)
    enough = workers_without_wait(demands.due, demands.run)
    # Sums of floats are off by less than the clock's tick.
    assert np.all(simulate_waits(demands.due, demands.run, enough) < 1e-6)
    assert enough == 1 or np.any(simulate_waits(demands.due, demands.run, enough - 1) > 0)


@pytest.mark.parametrize("seed", range(20))
def test_bisection_finds_what_trying_all_finds(seed: int) -> None:
    demands = random_demands(seed)

    def holds(workers: int) -> bool:
        return quantile(simulate_waits(demands.due, demands.run, workers), 0.9) <= 0.5

    most = workers_without_wait(demands.due, demands.run)
    tried = next(workers for workers in range(1, most + 1) if workers == most or holds(workers))
    assert fewest_workers(holds, most) == tried


def test_in_order_sorts_and_takes_a_run_that_ended_before_it_began_for_none() -> None:
    demands = in_order(np.array([3.0, 1.0]), np.array([-2.0, 4.0]), np.array([True, False]))
    assert demands.due.tolist() == [1.0, 3.0]
    assert demands.run.tolist() == [4.0, 1e-6]
    assert demands.first.tolist() == [False, True]


def test_a_quantile_is_a_value_that_was_seen() -> None:
    values = np.arange(1.0, 101.0)
    assert quantile(values, 0.95) == 95.0
    assert quantile(values, 0.951) == 96.0
    assert quantile(np.array([]), 0.5) == 0.0


def test_the_worst_hour_is_not_hidden_by_the_quiet_ones() -> None:
    due = np.concatenate([np.arange(0, 3600, 10.0), 3600.0 + np.arange(40.0)])
    demands = in_order(due, np.ones(len(due)), np.ones(len(due), dtype=bool))
    waits = np.where(due < 3600, 0.0, 9.0)
    summary = summarize_waits(demands, waits, 0.85)
    assert (summary.worst_hour, summary.overall) == (9.0, 0.0)
    assert summary.mean == pytest.approx(9.0 * 40 / 400)


def test_an_hour_of_few_tasks_has_no_say_of_its_own_and_retries_none_at_all() -> None:
    due = np.concatenate([np.arange(0, 3600, 10.0), 3600.0 + np.arange(5.0)])
    demands = in_order(due, np.ones(len(due)), np.append(np.ones(len(due) - 1, dtype=bool), False))
    waits = np.where(due < 3600, 0.0, 9.0)
    waits[-1] = 1e9
    summary = summarize_waits(demands, waits, 0.95)
    assert (summary.worst_hour, summary.overall) == (0.0, 0.0)
    assert summary.mean == pytest.approx(9.0 * 4 / 364)
