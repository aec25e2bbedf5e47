"""Where the ready tasks of a queue begin, remembered for a moment."""

from datetime import UTC, datetime, timedelta

from app.repository.connection import Row
from app.repository.starts import LATE, LIFE_SECONDS, MOST, Starts

KEY = ("tenant", "queue")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def claimed(at: datetime = LONG_AGO, *, seq: int = 7, returns: int = 0) -> tuple[Row, Row]:
    """The first row of a claim, and the last."""
    first = {"queue_id": 1, "returns": returns, "now": NOW}
    return first, {"priority": 20, "available_at": at, "created_at": LONG_AGO, "seq": seq}


def test_a_start_is_where_the_last_claim_ended() -> None:
    starts = Starts()
    starts.learn(KEY, *claimed(), None)
    start = starts.find(KEY)
    assert start is not None
    assert (start.at, start.seq, start.looked_until) == (LONG_AGO, 7, NOW - LATE)


def test_what_was_accepted_just_now_is_looked_at_again() -> None:
    starts = Starts()
    starts.learn(KEY, *claimed(NOW), None)
    start = starts.find(KEY)
    assert start is not None
    assert (start.at, start.seq) == (NOW - LATE, 0)


def test_a_start_lives_briefly_however_often_it_is_moved_on() -> None:
    clock = Clock()
    starts = Starts(clock)
    starts.learn(KEY, *claimed(), None)
    clock.seconds += LIFE_SECONDS * 0.9
    starts.learn(KEY, *claimed(seq=8), starts.find(KEY))
    assert starts.find(KEY) is not None
    clock.seconds += LIFE_SECONDS * 0.2
    assert starts.find(KEY) is None


def test_a_claim_that_found_everything_begins_a_new_life() -> None:
    clock = Clock()
    starts = Starts(clock)
    starts.learn(KEY, *claimed(), None)
    clock.seconds += LIFE_SECONDS * 0.9
    # Something came back, so the start that it was given did not hold.
    starts.learn(KEY, *claimed(returns=1), starts.find(KEY))
    clock.seconds += LIFE_SECONDS * 0.9
    assert starts.find(KEY) is not None


def test_a_start_is_forgotten() -> None:
    starts = Starts()
    starts.learn(KEY, *claimed(), None)
    starts.forget(KEY)
    assert starts.find(KEY) is None


def test_starts_do_not_pile_up() -> None:
    starts = Starts()
    for number in range(3 * MOST):
        starts.learn(("tenant", str(number)), *claimed(), None)
    assert sum(starts.find(("tenant", str(number))) is not None for number in range(3 * MOST)) <= MOST
