"""How long a task that failed waits."""

import pytest

from app.domain.backoff import Backoff

EXACT = Backoff(base_seconds=5, factor=2, max_seconds=3600, jitter=0)


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 5), (2, 10), (3, 20), (10, 2560), (11, 3600), (12, 3600)])
def test_delay_doubles_up_to_its_maximum(attempts: int, seconds: float) -> None:
    assert EXACT.delay_seconds(attempts) == seconds


def test_factor_of_one_keeps_the_delay() -> None:
    assert Backoff(base_seconds=7, factor=1, jitter=0).delay_seconds(5000) == 7


def test_base_above_the_maximum_is_capped() -> None:
    assert Backoff(base_seconds=60, max_seconds=10, jitter=0).delay_seconds(1) == 10


def test_thousands_of_attempts_wait_for_the_maximum() -> None:
    assert EXACT.delay_seconds(5000) == 3600


@pytest.mark.parametrize("attempts", [1, 10, 5000])
def test_zero_base_never_waits(attempts: int) -> None:
    assert Backoff(base_seconds=0, jitter=0).delay_seconds(attempts) == 0


def test_jitter_is_taken_on_both_sides_of_the_delay() -> None:
    backoff = Backoff(base_seconds=100, jitter=0.2)
    assert backoff.delay_seconds(1, uniform=lambda low, high: low) == pytest.approx(80)
    assert backoff.delay_seconds(1, uniform=lambda low, high: high) == pytest.approx(120)


def test_jitter_is_random_within_its_bounds() -> None:
    delays = [Backoff(base_seconds=100, jitter=0.2).delay_seconds(1) for _ in range(200)]
    assert all(80 <= delay <= 120 for delay in delays)
    assert len(set(delays)) > 100


def test_full_jitter_is_never_negative() -> None:
    backoff = Backoff(base_seconds=100, jitter=1)
    assert backoff.delay_seconds(1, uniform=lambda low, high: low) == 0


def test_defaults_are_those_of_a_queue() -> None:
    assert Backoff() == Backoff(base_seconds=5, factor=2, max_seconds=3600, jitter=0.2)
