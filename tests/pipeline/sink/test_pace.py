"""A partition keeps its share of the rate."""

from app.pipeline.sink.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def read(self) -> float:
        return self.now


def test_rows_go_at_the_share_of_the_rate() -> None:
    clock = Clock()
    pace = Pace(5.0, clock.sleep, clock.read)
    sent_at = []
    for _ in range(4):
        pace.take(5)
        sent_at.append(clock.now)
    pace.rest()
    assert sent_at == [0.0, 1.0, 2.0, 3.0]
    # Twenty rows at five a second: whoever comes next does not begin before their time is over.
    assert clock.now == 4.0


def test_time_that_was_not_used_is_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(1.0, clock.sleep, clock.read)
    clock.now = 100.0
    pace.take(1)
    pace.take(1)
    assert clock.now == 101.0


def test_a_slow_rate_makes_small_batches() -> None:
    assert [Pace(share).limit_rows(1000) for share in (0.5, 20.0, 5000.0, None)] == [1, 20, 1000, 1000]


def test_without_a_rate_nobody_waits() -> None:
    clock = Clock()
    pace = Pace(None, clock.sleep, clock.read)
    pace.take(1_000_000)
    pace.rest()
    assert clock.now == 0.0
