"""The arithmetic of the benchmark."""

import pytest

from bench.ratios import Claim, Summary, judge, ratios, summarise
from bench.rounds import rotated
from bench.scenario import Contestant

AT_LEAST = Claim("twice as fast", "race", "hare.cycles", "tortoise.cycles", required=2.0)
AT_MOST = Claim("no slower", "race", "hare.ms", "tortoise.ms", required=1.5, at_least=False)
ALONE = Claim("soon", "race", "hare.ms", None, required=5.0, at_least=False, unit=" ms")


def test_summary_is_the_middle_and_the_ends() -> None:
    assert summarise([3.0, 1.0, 8.0]) == Summary(median=3.0, low=1.0, high=8.0)


def test_spread_is_a_part_of_the_median() -> None:
    assert Summary(median=4.0, low=3.0, high=5.0).spread == pytest.approx(0.5)


def test_spread_of_nothing_is_nothing() -> None:
    assert Summary(median=0.0, low=0.0, high=1.0).spread == 0.0


def test_ratios_are_taken_round_by_round() -> None:
    assert ratios([10.0, 30.0], [5.0, 10.0]) == [2.0, 3.0]


def test_round_without_the_other_figure_says_nothing() -> None:
    assert ratios([10.0, 30.0, 40.0], [0.0, 10.0]) == [3.0]


@pytest.mark.parametrize(("hare", "met"), [([20.0, 21.0, 90.0], True), ([19.0, 5.0, 90.0], False)])
def test_median_of_the_ratios_decides(hare: list[float], met: bool) -> None:
    verdict = judge(AT_LEAST, {"hare.cycles": hare, "tortoise.cycles": [10.0, 10.0, 10.0]})
    assert verdict.is_met is met


@pytest.mark.parametrize(("hare", "met"), [(1.5, True), (1.6, False)])
def test_what_must_not_grow_is_met_below(hare: float, met: bool) -> None:
    assert judge(AT_MOST, {"hare.ms": [hare], "tortoise.ms": [1.0]}).is_met is met


def test_figure_on_its_own_is_not_divided() -> None:
    verdict = judge(ALONE, {"hare.ms": [3.0, 4.0]})
    assert verdict.measured == Summary(median=3.5, low=3.0, high=4.0)
    assert verdict.is_met is True


@pytest.mark.parametrize("figures", [{}, {"hare.cycles": [1.0]}, {"tortoise.cycles": [1.0]}])
def test_what_was_not_measured_is_not_judged(figures: dict[str, list[float]]) -> None:
    verdict = judge(AT_LEAST, figures)
    assert verdict.measured is None
    assert verdict.is_met is None


def test_each_round_begins_with_another_one() -> None:
    contestants = [Contestant(name, dict) for name in "abc"]
    orders = ["".join(contestant.name for contestant in rotated(contestants, number)) for number in range(4)]
    assert orders == ["abc", "bca", "cab", "abc"]


def test_nobody_can_take_turns() -> None:
    assert rotated([], 3) == []
