"""Ranges of a table's key: what one reader reads, in one short transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.pipeline.source.comparisons import Comparison, Operator

# So few rows that a transaction is short, and so many that starting a reader costs little.
KEYS_PER_RANGE = 250_000
MOST_RANGES = 4_096


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from `first` to `last`, both included; none if `first` is the greater."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many keys there may be."""
        return max(0, self.last - self.first + 1)

    def narrowed(self, key: str, comparisons: Sequence[Comparison]) -> "KeyRange":
        """What is left of the range under conditions on the key itself."""
        first, last = self.first, self.last
        for comparison in comparisons:
            if comparison.column.name == key:
                low, high = _bounds(comparison)
                first, last = (
                    max(first, low if low is not None else first),
                    min(last, high if high is not None else last),
                )
        return KeyRange(first, last)

    def split(self, parts: int | None = None) -> list["KeyRange"]:
        """Ranges of nearly the same length that cover this one; by default as many as are worth it."""
        wanted = parts or min(MOST_RANGES, -(-self.size // KEYS_PER_RANGE))
        count = max(1, min(wanted, self.size))
        edges = [self.first + self.size * part // count for part in range(count + 1)]
        return [KeyRange(start, end - 1) for start, end in pairwise(edges)]


def _bounds(comparison: Comparison) -> tuple[int | None, int | None]:
    values = [value for value in comparison.values if isinstance(value, int)]
    match comparison.operator:
        case Operator.EQUAL | Operator.IN:
            return min(values), max(values)
        case Operator.LESS:
            return None, values[0] - 1
        case Operator.LESS_OR_EQUAL:
            return None, values[0]
        case Operator.GREATER:
            return values[0] + 1, None
        case Operator.GREATER_OR_EQUAL:
            return values[0], None
    return None, None
