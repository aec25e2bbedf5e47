"""A job in parts: large where nothing holds them up, small where a rate does."""

import pytest

from app.pipeline.sink.job import MAX_PARTS, PART_ROWS, count_parts


@pytest.mark.parametrize(
    ("rows", "rate_per_second", "parts"),
    [
        (10 * PART_ROWS, None, 10),
        # Four cores send 25 a second each, in parts of 50.
        (3000, 100.0, 60),
        # A rate that is no bound makes no smaller parts.
        (10 * PART_ROWS, 1_000_000.0, 10),
        # A core sends a row in forty seconds.
        (8, 0.1, 8),
        (3, None, 4),
        (10**9, None, MAX_PARTS),
    ],
)
def test_a_part_is_sent_in_some_seconds(rows: int, rate_per_second: float | None, parts: int) -> None:
    assert count_parts(rows, rate_per_second, parallelism=4) == parts
