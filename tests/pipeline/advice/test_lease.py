"""The advice on leases: in words, and never shorter than the runs that it is for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from app.pipeline.advice.findings import Confidence, LogSeen, QueuePolicy
from app.pipeline.advice.lease import advise_lease, heartbeat_of, losses_are_deaths
from app.pipeline.advice.runs import NO_RUNS, RunSummary, log_seen, summarize_bins, tail_seconds, weighted_quantile

SLOW = RunSummary(
    ended=9_700, lost=300, cut=0, successes_logged=9_700, failures_logged=300, median=2.0, longest=30.0, tail=12.0,
    tail_is_known=True, lost_after=10.0, ended_near=500,
)  # fmt: skip


def bins(**runs: list[float]) -> pd.DataFrame:
    """One bin for each run."""
    rows = [(outcome, 1, run) for outcome, times in runs.items() for run in times]
    return pd.DataFrame(rows, columns=["outcome", "runs", "longest"])


def test_a_lease_that_slow_runs_lose_is_made_longer() -> None:
    advice = advise_lease(SLOW, QueuePolicy(lease_seconds=10), LogSeen.ALL)
    assert advice.sentence == (
        "99 % of runs end within 12 s; a lease of 10 s lost 3 % of them:"
        " 20 s instead of 10 s, with a heartbeat every 7 s."
    )
    assert (advice.lease_seconds, advice.heartbeat_seconds) == (20.0, 7.0)
    assert advice.confidence is Confidence.GOOD
    assert {figure.name: figure.value for figure in advice.evidence}["share of leases lost"] == 0.03


def test_a_lease_with_room_is_left_as_it_is() -> None:
    advice = advise_lease(replace(SLOW, lost=0), QueuePolicy(lease_seconds=30), LogSeen.ALL)
    assert advice.sentence.endswith("no lease was lost: the lease of 30 s is right, with a heartbeat every 10 s.")


def test_a_lease_far_too_long_is_made_shorter() -> None:
    runs = replace(SLOW, lost=0, tail=0.2, longest=0.5)
    assert advise_lease(runs, QueuePolicy(lease_seconds=3600), LogSeen.ALL).lease_seconds == 5.0


def test_leases_lost_to_dead_workers_do_not_make_the_lease_longer() -> None:
    runs = summarize_bins(bins(success=[0.5] * 970, lost=[30.0] * 30))
    assert losses_are_deaths(runs)
    assert not runs.tail_is_known
    advice = advise_lease(runs, QueuePolicy(), LogSeen.ALL)
    assert "died or hung" in advice.sentence
    assert advice.lease_seconds == 5.0


def test_a_tail_that_the_lease_cut_off_is_said_to_be_unknown() -> None:
    times = np.random.default_rng(3).exponential(5.0, 5_000)
    runs = summarize_bins(bins(success=times[times < 10].tolist(), lost=[10.0] * int((times >= 10).sum())))
    advice = advise_lease(runs, QueuePolicy(lease_seconds=10), LogSeen.ALL)
    assert advice.sentence.startswith(
        "More than 1 % of runs had not ended after 10 s; a lease of 10 s lost 14 % of them"
    )
    assert (advice.lease_seconds, advice.confidence) == (20.0, Confidence.LOW)
    assert any("look again" in caveat for caveat in advice.caveats)


def test_too_few_runs_get_no_advice() -> None:
    for runs in (NO_RUNS, replace(SLOW, ended=99)):
        advice = advise_lease(runs, QueuePolicy(), LogSeen.ALL)
        assert (advice.confidence, advice.lease_seconds, advice.heartbeat_seconds) == (Confidence.NONE, None, None)
        assert advice.sentence.startswith("Too few runs")


def test_without_a_log_nobody_says_that_no_lease_was_lost() -> None:
    advice = advise_lease(replace(SLOW, lost=0), QueuePolicy(), LogSeen.OFF)
    assert "whether leases were lost is not recorded" in advice.sentence
    assert any("not all in the log" in caveat for caveat in advice.caveats)


def test_a_lease_stays_within_what_the_queue_allows_and_says_so() -> None:
    advice = advise_lease(SLOW, QueuePolicy(lease_seconds=10, max_lease_seconds=15), LogSeen.ALL)
    assert advice.lease_seconds == 15.0
    assert any("max_lease_seconds" in caveat for caveat in advice.caveats)


def test_a_long_lease_is_said_to_keep_the_tasks_of_the_dead() -> None:
    advice = advise_lease(replace(SLOW, tail=3600.0, longest=4000.0), QueuePolicy(), LogSeen.ALL)
    assert any("worker that dies waits up to" in caveat for caveat in advice.caveats)


@pytest.mark.parametrize("seed", range(60))
def test_a_lease_is_never_shorter_than_99_percent_of_the_runs_that_ended(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = rng.choice(
        [rng.exponential(3, 3000), rng.pareto(0.8, 3000), rng.random(3000) * 0, rng.lognormal(3, 2, 3000)]
    )
    lease = float(rng.choice([1.0, 30.0, 1e9]))
    ended, cut = times[times < lease], times[times >= lease]
    runs = summarize_bins(bins(success=ended.tolist(), lost=[lease] * len(cut)))
    policy = QueuePolicy(lease_seconds=lease, max_lease_seconds=1e12)
    advice = advise_lease(runs, policy, LogSeen.ALL)
    if advice.lease_seconds is not None and advice.heartbeat_seconds is not None:
        assert advice.lease_seconds >= np.quantile(ended, 0.99)
        assert advice.lease_seconds >= runs.tail or losses_are_deaths(runs)
        assert 2 * advice.heartbeat_seconds < advice.lease_seconds


def test_heartbeats_leave_room_for_two_that_fail() -> None:
    assert [heartbeat_of(lease) for lease in (1.0, 5.0, 20.0, 30.0)] == [0.33, 1.67, 7.0, 10.0]


def test_the_tail_without_losses_is_the_quantile() -> None:
    ended = np.arange(1.0, 201.0), np.ones(200)
    nothing = np.array([]), np.array([])
    assert tail_seconds(ended, nothing) == (198.0, True)
    assert tail_seconds(nothing, nothing) == (0.0, False)
    assert tail_seconds(nothing, ended) == (200.0, False)


def test_the_tail_counts_losses_as_runs_that_would_have_gone_on() -> None:
    # Kaplan and Meier by hand: 2 of 4 end at 1, one is lost at 2, the last ends at 3.
    ended, lost = (np.array([1.0, 3.0]), np.array([2.0, 1.0])), (np.array([2.0]), np.array([1.0]))
    assert tail_seconds(ended, lost) == (3.0, True)
    # Censored at random, the tail is that of the whole: 99 % of an exponential end within ln 100.
    rng = np.random.default_rng(5)
    times, leases = rng.exponential(1.0, 200_000), rng.exponential(3.0, 200_000)
    short, cut = np.sort(times[times <= leases]), np.sort(leases[times > leases])
    tail, known = tail_seconds((short, np.ones(len(short))), (cut, np.ones(len(cut))))
    assert known
    assert tail == pytest.approx(np.log(100), rel=0.03)
    assert np.quantile(short, 0.99) < 0.8 * tail


def test_quantiles_of_weighted_values() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert [weighted_quantile(values, weights, share) for share in (0.25, 0.5, 0.75, 1.0)] == [1.0, 2.0, 2.0, 3.0]
    assert weighted_quantile(np.array([]), np.array([]), 0.5) == 0.0


def test_successes_come_from_the_log_or_from_the_tasks_but_never_from_both() -> None:
    whole = summarize_bins(bins(success=[1.0] * 100, first_try=[9.0] * 100, failure=[2.0]))
    assert (whole.ended, whole.longest) == (101, 2.0)
    failures = summarize_bins(bins(first_try=[9.0] * 100, failure=[2.0], lost=[5.0], cut=[1.0]))
    assert (failures.ended, failures.longest, failures.lost, failures.cut) == (101, 9.0, 1, 1)


@pytest.mark.parametrize(
    ("successes", "failures", "finished", "log"),
    [(0, 0, 0, LogSeen.UNKNOWN), (0, 9, 0, LogSeen.UNKNOWN), (95, 0, 100, LogSeen.ALL), (50, 0, 100, LogSeen.PARTIAL),
     (0, 5, 100, LogSeen.FAILURES), (0, 0, 100, LogSeen.OFF)],
)  # fmt: skip
def test_how_much_is_logged_is_seen(successes: int, failures: int, finished: int, log: LogSeen) -> None:
    runs = replace(NO_RUNS, successes_logged=successes, failures_logged=failures)
    assert log_seen(runs, finished) is log
