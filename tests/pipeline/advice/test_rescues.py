"""What attempts are worth, and what follows for their limit and for the backoff."""

import numpy as np
import pytest

from app.pipeline.advice.delays import advise_backoff, delay_outcome, enough_delay
from app.pipeline.advice.findings import Confidence, LogSeen, QueuePolicy
from app.pipeline.advice.rescues import (
    FEWEST_REACHED,
    MORE_ATTEMPTS,
    Ending,
    advise_attempts,
    last_worthwhile,
    life_table,
    tasks_done,
)


def endings(*rescues: int, left: int, died_at: int | None = None) -> list[Ending]:
    """Tasks done at attempt 1, 2, …, and those that died."""
    ended = [Ending("done", attempt, tasks) for attempt, tasks in enumerate(rescues, 1)]
    return [*ended, Ending("dead", died_at or len(rescues), left)]


def test_the_table_counts_who_reached_an_attempt_and_whom_it_rescued() -> None:
    table = life_table(endings(900, 80, 10, left=10))
    assert [(rescue.attempt, rescue.reached, rescue.rescued) for rescue in table] == [
        (1, 1000, 900), (2, 100, 80), (3, 20, 10),
    ]  # fmt: skip
    assert [rescue.share for rescue in table] == [0.9, 0.8, 0.5]
    assert all(rescue.low < rescue.share < rescue.high for rescue in table)


def test_an_attempt_whose_end_is_not_known_counts_for_nothing() -> None:
    table = life_table(
        [
            Ending("done", 1, 10),
            Ending("leased", 3, 4),
            Ending("cancelled", 2, 2),
            Ending("scheduled", 2, 5),
            Ending("expired", 1, 3),
        ]
    )
    assert [(rescue.attempt, rescue.reached, rescue.rescued) for rescue in table] == [(1, 24, 10), (2, 9, 0)]
    assert life_table([Ending("leased", 1, 7)]) == ()


def test_a_task_that_died_or_waits_says_nothing_of_the_attempts_that_it_never_had() -> None:
    shares = [rescue.share for rescue in life_table([*endings(500, 250, left=250), Ending("scheduled", 1, 400)])]
    assert shares == [500 / 1400, 0.5]


def test_the_table_gives_back_the_chances_that_made_it_whatever_the_limits() -> None:
    chances, rng = [0.7, 0.4, 0.2, 0.1], np.random.default_rng(11)
    ended = []
    for _ in range(20_000):
        limit = int(rng.integers(1, 5))
        success = next((number for number in range(1, limit + 1) if rng.random() < chances[number - 1]), None)
        ended.append(Ending("done", success, 1) if success else Ending("dead", limit, 1))
    for rescue, chance in zip(life_table(ended), chances, strict=True):
        assert rescue.share == pytest.approx(chance, abs=0.06)


def test_attempts_that_only_cost_are_advised_against() -> None:
    advice = advise_attempts(endings(9_000, 700, 100, 1, 1, left=198), QueuePolicy())
    assert advice.max_attempts == 3
    assert advice.sentence == (
        "Attempt 4 rescued 0.5 % of the tasks that reached it, and all after attempt 3 took 399 runs to rescue 2 tasks:"
        " max_attempts 3 is enough."
    )
    assert advice.confidence is Confidence.LOW
    assert advise_attempts(endings(90_000, 7000, 1000, 5, 5, left=1990), QueuePolicy()).confidence is Confidence.GOOD


def test_a_late_attempt_that_rescues_keeps_those_before_it() -> None:
    rescues = life_table(endings(5_000, 5, 1000, left=3995))
    assert rescues[1].high < 0.05
    assert last_worthwhile(rescues) == 3


def test_an_attempt_is_worth_having_unless_it_is_shown_not_to_be() -> None:
    assert last_worthwhile(life_table(endings(1_000, 40, left=360))) == 2
    assert last_worthwhile(life_table(endings(1_000, 0, left=FEWEST_REACHED))) == 2
    assert last_worthwhile(life_table(endings(1_000, 0, left=FEWEST_REACHED - 1))) == 1
    assert last_worthwhile(life_table(endings(1_000, 0, left=1_000))) == 1


def test_where_the_last_attempt_still_rescues_more_are_tried() -> None:
    advice = advise_attempts(endings(5_000, 500, 300, left=200), QueuePolicy(max_attempts=3))
    assert advice.max_attempts == 3 + MORE_ATTEMPTS
    assert advice.sentence.startswith("The last attempt, number 3, still rescued 60 %")
    assert advice.confidence is Confidence.LOW
    assert any("was not seen" in caveat for caveat in advice.caveats)


def test_a_limit_that_nothing_speaks_against_is_kept() -> None:
    advice = advise_attempts(endings(5_000, 400, left=100, died_at=2), QueuePolicy(max_attempts=5))
    assert (advice.max_attempts, advice.confidence) == (5, Confidence.LOW)
    assert advice.sentence == "Attempt 2 rescued 80 % of the tasks that reached it: max_attempts 5 is right."


def test_without_a_limit_all_attempts_that_were_of_use_are_kept() -> None:
    assert advise_attempts(endings(5_000, 400, 300, left=0), QueuePolicy(max_attempts=0)).max_attempts == 3


@pytest.mark.parametrize(
    "ended", [[], endings(1000, left=0), endings(1000, FEWEST_REACHED - 1, left=0), [Ending("dead", 1, 1000)]]
)
def test_too_few_retries_get_no_advice(ended: list[Ending]) -> None:
    advice = advise_attempts(ended, QueuePolicy())
    assert (advice.max_attempts, advice.confidence) == (None, Confidence.NONE)


def test_where_all_fail_no_limit_is_right() -> None:
    advice = advise_attempts([Ending("dead", 5, 2000)], QueuePolicy())
    assert (advice.max_attempts, advice.confidence) == (None, Confidence.NONE)
    assert advice.sentence.startswith("No attempt at 2,000 tasks succeeded")


def test_where_no_retry_rescues_none_is_made() -> None:
    advice = advise_attempts(endings(2_000, 0, 0, left=1_000), QueuePolicy())
    assert advice.max_attempts == 1
    assert "all after attempt 1 took 2,000 runs to rescue 0 tasks" in advice.sentence


def test_done_are_those_that_are_done() -> None:
    assert tasks_done(endings(5, 4, left=3)) == 9


SHORT, MIDDLE, LONG = delay_outcome(0, 500, 50), delay_outcome(3, 500, 350), delay_outcome(6, 500, 360)


def test_a_delay_that_helps_is_advised() -> None:
    advice = advise_backoff([SHORT, MIDDLE, LONG], (), LogSeen.ALL, QueuePolicy())
    assert (advice.base_seconds, advice.confidence) == (8.0, Confidence.GOOD)
    assert advice.sentence == (
        "A second attempt within 2 s of the failure succeeded in 10 % of cases, one after 8 s or more in 70 %:"
        " a backoff that begins at 8 s is right (it is 5 s)."
    )
    assert advice.delays == (SHORT, MIDDLE, LONG)


def test_the_shortest_delay_that_is_nearly_the_best_is_enough() -> None:
    assert enough_delay([SHORT, MIDDLE, LONG]) is MIDDLE
    assert enough_delay([SHORT]) is SHORT


def test_delays_that_make_no_difference_are_left() -> None:
    advice = advise_backoff([delay_outcome(0, 500, 250), delay_outcome(5, 500, 260)], (), LogSeen.ALL, QueuePolicy())
    assert (advice.base_seconds, advice.confidence) == (None, Confidence.NONE)
    assert advice.sentence == "Between 1 s and 64 s the delay made no difference to second attempts that shows."
    alone = advise_backoff([MIDDLE], (), LogSeen.ALL, QueuePolicy())
    assert alone.sentence == "Second attempts came 8 s to 16 s after the failure: other delays were not seen."


def test_a_third_attempt_better_than_the_second_speaks_for_a_longer_delay() -> None:
    rescues = life_table(endings(5_000, 100, 800, left=1_000))
    advice = advise_backoff([MIDDLE], rescues, LogSeen.ALL, QueuePolicy())
    assert (advice.base_seconds, advice.confidence) == (10.0, Confidence.LOW)


def test_few_second_attempts_are_not_compared() -> None:
    assert advise_backoff([delay_outcome(0, 9, 0)], (), LogSeen.ALL, QueuePolicy()).sentence.startswith("Too few")


@pytest.mark.parametrize("log", [log for log in LogSeen if log is not LogSeen.ALL])
def test_without_the_successes_in_the_log_delays_say_nothing(log: LogSeen) -> None:
    advice = advise_backoff([SHORT, MIDDLE, LONG], (), log, QueuePolicy())
    assert (advice.base_seconds, advice.confidence) == (None, Confidence.NONE)


def test_spans_of_delays() -> None:
    spans = [delay_outcome(span, 1, 1) for span in (-1, 0, 4)]
    assert [(span.from_seconds, span.to_seconds) for span in spans] == [(0.0, 1.0), (1.0, 2.0), (16.0, 32.0)]
