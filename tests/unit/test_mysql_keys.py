"""Keys of rows as a condition: ranges where they follow one another."""

import pytest

from app.repository.mysql_keys import is_one_of


@pytest.mark.parametrize(
    ("keys", "condition"),
    [
        ([7], "(seq IN (7))"),
        ([8, 7], "(seq IN (7,8))"),
        ([3, 1, 2, 2], "(seq BETWEEN 1 AND 2 OR seq IN (3))"),
        ([1, 2, 3, 5, 7, 8, 9, 10], "(seq BETWEEN 1 AND 2 OR seq BETWEEN 7 AND 9 OR seq IN (3,5,10))"),
    ],
)
def test_keys_that_follow_one_another_are_a_range_without_its_last(keys: list[int], condition: str) -> None:
    assert is_one_of("seq", keys) == condition
