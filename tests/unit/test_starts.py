"""Where the ready tasks of a lane begin, remembered for a moment."""

from datetime import UTC, datetime, timedelta

from app.repository.starts import BELOW_ALL, LATE, LIFE_SECONDS, MOST, Memory, Position, Start, Starts, start_behind

KEY = ("tenant", "queue", None)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
LAST: Position = (20, LONG_AGO, 7)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def start(*, returns: int = 0, seq: int = 7) -> Start:
    return start_behind(1, returns, NOW, (20, LONG_AGO, seq))


def test_a_start_is_behind_what_was_taken_last() -> None:
    found = start_behind(1, 0, NOW, LAST)
    assert (found.priority, found.at, found.seq, found.looked_until) == (20, LONG_AGO, 7, NOW - LATE)


def test_what_was_accepted_just_now_is_looked_at_again() -> None:
    found = start_behind(1, 0, NOW, (20, NOW, 7))
    assert (found.priority, found.at, found.seq) == (20, NOW - LATE, 0)


def test_the_start_of_an_empty_lane_is_behind_everything() -> None:
    found = start_behind(1, 0, NOW, None)
    assert (found.priority, found.at, found.seq, found.looked_until) == (BELOW_ALL, NOW - LATE, 0, NOW - LATE)


def test_a_start_lives_briefly_however_often_it_is_moved_on() -> None:
    clock = Clock()
    starts = Starts(clock)
    starts.learn(KEY, start(), None)
    clock.seconds += LIFE_SECONDS * 0.9
    starts.learn(KEY, start(seq=8), starts.find(KEY))
    found = starts.find(KEY)
    assert found is not None
    assert found.seq == 8
    clock.seconds += LIFE_SECONDS * 0.2
    assert starts.find(KEY) is None


def test_a_claim_that_found_everything_begins_a_new_life() -> None:
    clock = Clock()
    starts = Starts(clock)
    starts.learn(KEY, start(), None)
    clock.seconds += LIFE_SECONDS * 0.9
    # Something came back, so the start that it was given did not hold.
    starts.learn(KEY, start(returns=1), starts.find(KEY))
    clock.seconds += LIFE_SECONDS * 0.9
    assert starts.find(KEY) is not None


def test_who_looked_at_everything_since_knows_better() -> None:
    clock = Clock()
    starts = Starts(clock)
    starts.learn(KEY, start(), None)
    given = starts.find(KEY)
    clock.seconds += LIFE_SECONDS
    starts.learn(KEY, start(seq=3), None)
    starts.learn(KEY, start(seq=8), given)
    found = starts.find(KEY)
    assert found is not None
    assert found.seq == 3


def test_what_is_kept_lives_briefly_or_is_forgotten() -> None:
    clock = Clock()
    memory: Memory[str] = Memory(clock)
    memory.keep(KEY, "known")
    assert memory.find(KEY) == "known"
    clock.seconds += LIFE_SECONDS
    assert memory.find(KEY) is None
    memory.keep(KEY, "known")
    memory.forget(KEY)
    assert memory.find(KEY) is None


def test_memories_do_not_pile_up() -> None:
    memory: Memory[int] = Memory()
    keys = [("tenant", str(number), None) for number in range(3 * MOST)]
    for key in keys:
        memory.keep(key, 1)
    assert sum(memory.find(key) is not None for key in keys) <= MOST
