"""Rows that are named by their keys: those of a batch mostly follow one another, and are read as ranges."""

from collections.abc import Iterator, Sequence
from itertools import groupby

# A shorter run is not worth a range.
SHORTEST_RUN = 3


def is_one_of(column: str, keys: Sequence[int]) -> str:
    """The condition that a column holds one of these keys, of which there is at least one."""
    ranges: list[str] = []
    alone: list[int] = []
    for first, last in _runs(keys):
        if last - first + 1 < SHORTEST_RUN:
            alone += range(first, last + 1)
            continue
        # The last stands alone: whoever reads a range looks at what comes behind it, and would wait for its lock.
        ranges.append(f"{column} BETWEEN {first} AND {last - 1}")
        alone.append(last)
    listed = ",".join(map(str, alone))
    return f"({' OR '.join([*ranges, f'{column} IN ({listed})'])})"


def _runs(keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of keys that follow one another without a gap."""
    for _, run in groupby(enumerate(sorted(set(keys))), key=lambda place: place[1] - place[0]):
        numbers = [key for _, key in run]
        yield numbers[0], numbers[-1]
