"""Ranges of keys cover what they are cut from, once."""

from itertools import pairwise

import pytest

from app.pipeline.source.comparisons import Operator
from app.pipeline.source.keys import KEYS_PER_RANGE, MOST_RANGES, KeyRange
from app.pipeline.source.reading import compare
from app.pipeline.tables import HISTORY


@pytest.mark.parametrize(("first", "last", "parts"), [(1, 10, 3), (5, 5, 4), (-7, 2, 10), (1, 2**63 - 1, 7)])
def test_parts_join_without_gap_or_overlap(first: int, last: int, parts: int) -> None:
    ranges = KeyRange(first, last).split(parts)
    assert (ranges[0].first, ranges[-1].last) == (first, last)
    assert all(after.first == before.last + 1 for before, after in pairwise(ranges))
    assert all(part.size > 0 for part in ranges)
    assert len(ranges) == min(parts, KeyRange(first, last).size)


def test_nothing_is_one_part_of_nothing() -> None:
    assert KeyRange(1, 0).split(4) == [KeyRange(1, 0)]


def test_as_many_parts_as_are_worth_it() -> None:
    assert len(KeyRange(1, KEYS_PER_RANGE).split()) == 1
    assert len(KeyRange(1, KEYS_PER_RANGE + 1).split()) == 2
    assert len(KeyRange(1, 2**63 - 1).split()) == MOST_RANGES


@pytest.mark.parametrize(
    ("asked", "values", "left"),
    [
        (Operator.EQUAL, (5,), KeyRange(5, 5)),
        (Operator.IN, (3, 200, 7), KeyRange(3, 100)),
        (Operator.LESS, (5,), KeyRange(1, 4)),
        (Operator.LESS_OR_EQUAL, (5,), KeyRange(1, 5)),
        (Operator.GREATER, (5,), KeyRange(6, 100)),
        (Operator.GREATER_OR_EQUAL, (5,), KeyRange(5, 100)),
        (Operator.IS_NOT_NULL, (), KeyRange(1, 100)),
    ],
)
def test_conditions_on_the_key_narrow_it(asked: Operator, values: tuple[int, ...], left: KeyRange) -> None:
    other = compare(HISTORY, "priority", Operator.LESS, 0)
    assert KeyRange(1, 100).narrowed("id", [compare(HISTORY, "id", asked, *values), other]) == left
