"""Numbers as people read them."""

import numpy as np
import pytest

from app.pipeline.advice.intervals import wilson
from app.pipeline.advice.wording import count, percent, round_up, seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (0.0123, "0.012 s"), (1, "1 s"), (1.23, "1.2 s"), (9.99, "10 s"), (119, "119 s"), (150, "2.5 min"),
     (7200, "2 h"), (200_000, "2.3 days"), (1e9, "11,574 days")],
)  # fmt: skip
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.0001, "under 0.1 %"), (0.03, "3 %"), (0.0312, "3.1 %"), (0.5, "50 %"), (0.995, "99.5 %"),
     (0.9999, "over 99.9 %"), (1, "100 %")],
)  # fmt: skip
def test_shares(share: float, text: str) -> None:
    assert percent(share) == text


def test_counts() -> None:
    assert (count(1, "task", "tasks"), count(1200, "task", "tasks")) == ("1 task", "1,200 tasks")


def test_rounding_up_never_goes_down_nor_far() -> None:
    for value in np.exp(np.random.default_rng(1).uniform(-10, 15, 2000)).tolist():
        assert value * (1 - 1e-8) <= round_up(value) <= value * 1.51
    assert [round_up(value) for value in (0, 18, 20, 75, 76, 0.3)] == [0, 20, 20, 75, 100, pytest.approx(0.3)]


def test_an_interval_holds_its_share_and_narrows() -> None:
    for cases in (1, 10, 1000):
        for successes in (0, cases // 2, cases):
            low, high = wilson(successes, cases)
            assert 0 <= low <= successes / cases <= high <= 1
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
