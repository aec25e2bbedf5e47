"""What is pruned by one transaction."""

import pyarrow as pa

from app.pipeline.archive.pruning import SPREAD, slices


def ids_of(ids: list[int], rows: int) -> list[list[int]]:
    keys = pa.table({"id": ids, "instant": [0] * len(ids)})
    return [some.column("id").to_pylist() for some in slices(keys, rows)]


def test_as_many_rows_as_a_transaction_takes() -> None:
    assert ids_of([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]


def test_fewer_where_they_lie_far_apart() -> None:
    """A transaction may look at all that lies between its first row and its last."""
    far = 1 + 2 * SPREAD
    assert ids_of([1, far - 1, far, far + 1, 10 * far], 2) == [[1, far - 1], [far, far + 1], [10 * far]]
    assert ids_of([1, far, far + 1], 2) == [[1], [far, far + 1]]


def test_no_rows() -> None:
    assert ids_of([], 2) == []
