"""When the backlog is gone: what is reckoned from the rates, and how it is said."""

import math

import numpy as np
import pandas as pd
import pytest

from app.pipeline.advice.drain import forecast_drain, rate, unknown_drain
from app.pipeline.advice.findings import Confidence, QueuePolicy
from app.pipeline.advice.flows import SPAN_SECONDS, busy_spans, capacity_of, drain_range, drain_seconds, flow_of


def spans(came: list[int], left: list[int], backlog: int, later: int = 0) -> pd.DataFrame:
    """What came and left in each span, oldest first, up to now."""
    ago = range(len(came) - 1, -1, -1)
    rows = [*zip(ago, came, left, strict=True), (-1, backlog, 0), (-2, later, 0)]
    return pd.DataFrame(rows, columns=["span", "came", "left"])


# Ever more than can be done came for a while, then less: the backlog was never empty.
BUSY = spans(came=[900] * 16 + [300] * 32, left=[600] * 48, backlog=3_000)


def test_a_backlog_under_way_is_drained_at_the_difference_of_the_rates() -> None:
    flow = flow_of(spans(came=[300] * 24, left=[600] * 24, backlog=3_000))
    assert (flow.busy_spans, flow.capacity, flow.arrivals) == (24, 2.0, 1.0)
    assert (flow.soonest, flow.likely, flow.latest) == (3_000.0, 3_000.0, 3_000.0)
    forecast = forecast_drain(flow, QueuePolicy())
    assert forecast.sentence == (
        "3,000 tasks wait or run; 1 a second arrive and 2 a second can be finished: gone in about 50 min."
    )
    assert (forecast.confidence, forecast.never, forecast.likely_seconds) == (Confidence.GOOD, False, 3_000.0)


def test_more_arrivals_than_can_be_done_never_end() -> None:
    forecast = forecast_drain(flow_of(spans(came=[900] * 24, left=[600] * 24, backlog=9_000)), QueuePolicy())
    assert forecast.never
    assert (forecast.likely_seconds, forecast.latest_seconds) == (None, None)
    assert forecast.sentence.endswith(
        "3 a second arrive and 2 a second can be finished: at these rates the backlog never ends."
    )


def test_the_range_holds_the_likely_and_may_have_no_end() -> None:
    flow = flow_of(BUSY)
    assert flow.soonest <= flow.likely <= flow.latest
    assert math.isinf(flow.latest)
    assert not math.isinf(flow.soonest)
    assert "between" in forecast_drain(flow, QueuePolicy()).sentence
    assert forecast_drain(flow, QueuePolicy()).sentence.endswith(" and never).")


def test_a_backlog_that_may_end_after_all_is_said_to() -> None:
    forecast = forecast_drain(
        flow_of(spans(came=[900] * 24 + [300] * 24, left=[600] * 48, backlog=3_000)), QueuePolicy()
    )
    assert (forecast.never, forecast.soonest_seconds) == (True, 6_000.0)
    assert forecast.sentence.endswith("at these rates the backlog never ends, or at best in 100 min.")


def test_a_short_time_gives_a_wide_range() -> None:
    flow = flow_of(spans(came=[10, 50, 20, 60, 5, 30], left=[40, 60, 80, 50, 40, 90], backlog=900))
    assert flow.soonest < flow.likely < flow.latest


def test_idle_workers_are_not_taken_for_slow_ones() -> None:
    # Nothing waited all day, then 500 tasks came at once: what left was what came, not what could be done.
    flow = flow_of(spans(came=[10] * 30 + [90] * 10 + [500], left=[10] * 30 + [90] * 10 + [0], backlog=500))
    assert flow.busy_spans == 0
    assert flow.capacity == pytest.approx(90 / SPAN_SECONDS)
    forecast = forecast_drain(flow, QueuePolicy())
    assert not forecast.never
    assert forecast.confidence is Confidence.LOW
    assert any("may be able to do more" in caveat for caveat in forecast.caveats)


def test_busy_is_where_something_waited_at_both_ends() -> None:
    came, left = np.array([5.0, 100.0, 50.0, 10.0]), np.array([5.0, 50.0, 60.0, 50.0])
    assert busy_spans(came, left, backlog=0).tolist() == [False, False, True, False]
    assert busy_spans(came, left, backlog=100).tolist() == [True, True, True, True]
    came, left = np.array([40.0, 40.0, 0.0, 0.0]), np.array([0.0, 40.0, 40.0, 0.0])
    assert busy_spans(came, left, backlog=0).tolist() == [False, True, False, False]
    assert busy_spans(np.array([]), np.array([]), 5).tolist() == []


def test_capacity_of_nothing_is_nothing() -> None:
    assert capacity_of(np.array([]), np.array([], dtype=bool)) == 0.0
    assert drain_range(np.array([]), np.array([]), np.array([], dtype=bool), 5) == (math.inf, math.inf)
    assert drain_range(np.array([]), np.array([]), np.array([], dtype=bool), 0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("backlog", "capacity", "arrivals", "lasts"),
    [(0, 0.0, 5.0, 0.0), (10, 2.0, 1.0, 10.0), (10, 1.0, 1.0, math.inf), (10, 0.0, 0.0, math.inf)],
)
def test_how_long_it_lasts(backlog: int, capacity: float, arrivals: float, lasts: float) -> None:
    assert drain_seconds(backlog, capacity, arrivals) == lasts


@pytest.mark.parametrize("seed", range(20))
def test_a_larger_backlog_never_ends_sooner_at_the_same_rates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    came, left = rng.poisson(20, 40).astype(float), rng.poisson(22, 40).astype(float)
    busy = np.ones(40, dtype=bool)
    ranges = [drain_range(came, left, busy, backlog) for backlog in (1, 10, 1000)]
    assert ranges == sorted(ranges)
    assert all(soonest <= latest for soonest, latest in ranges)


def test_one_task_and_nothing_seen_before() -> None:
    flow = flow_of(spans(came=[], left=[], backlog=1))
    forecast = forecast_drain(flow, QueuePolicy())
    assert forecast.sentence == "1 task waits or runs, and nothing was finished lately: at this rate never."
    assert (forecast.never, forecast.confidence) == (True, Confidence.LOW)


def test_nothing_waits() -> None:
    for flow in (None, flow_of(spans(came=[5], left=[5], backlog=0, later=7))):
        forecast = forecast_drain(flow, QueuePolicy())
        assert (forecast.backlog, forecast.likely_seconds, forecast.never) == (0, 0.0, False)
    assert forecast.caveats == ("7 tasks are due later and not counted.",)


def test_a_paused_queue_is_never_drained() -> None:
    forecast = forecast_drain(flow_of(BUSY), QueuePolicy(paused=True))
    assert (forecast.never, forecast.soonest_seconds, forecast.likely_seconds) == (True, None, None)
    assert "paused" in forecast.sentence


def test_without_a_live_database_nobody_knows() -> None:
    assert (unknown_drain().backlog, unknown_drain().confidence) == (None, Confidence.NONE)


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(0.0, "0 a day"), (2.5, "2.5 a second"), (0.5, "30 a minute"), (0.001, "3.6 an hour"), (0.0001, "8.6 a day")],
)
def test_rates_are_told_in_whole_tasks(per_second: float, text: str) -> None:
    assert rate(per_second) == text
