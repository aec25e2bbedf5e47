"""Parts of a range of keys of MySQL whose rows fit in memory: connectorx reads all rows of a statement ahead."""

from collections.abc import Iterable, Iterator

from app.pipeline.source.keys import KeyRange
from app.pipeline.source.scan import Scan

# What a statement may bring, about.
PART_BYTES = 16 * 1024 * 1024
BLOCK_KEYS = 1024
# So few that the largest rows there can be are within the bound.
HEAVY_KEYS = 32
ROW_BYTES = 512
# What may be long, and how it is measured without being read; `size` is that of payload and meta.
MEASURES = {
    "payload": "size",
    "result": "ifnull(octet_length(result), 0)",
    "last_error": "ifnull(octet_length(last_error), 0)",
    "reason": "ifnull(octet_length(reason), 0)",
}

# The number of a block of keys, and the bytes of its rows.
Block = tuple[int, int]


def weigh(scan: Scan, keys: KeyRange) -> str:
    """The statement that gives the blocks of a range in their order."""
    key = scan.table.key
    size = " + ".join([str(ROW_BYTES), *(MEASURES[column.name] for column in scan.columns if column.name in MEASURES)])
    return (
        f"SELECT {key} DIV {BLOCK_KEYS} AS block, CAST(sum({size}) AS SIGNED) AS bytes FROM {scan.table.relation}"
        f" WHERE {key} BETWEEN {keys.first:d} AND {keys.last:d} GROUP BY block ORDER BY block"
    )


def cut(keys: KeyRange, blocks: Iterable[Block]) -> Iterator[KeyRange]:
    """Ranges that hold all rows of the blocks, in their order; none of them holds many bytes."""
    light: list[int] = []
    total = 0
    for block, size in blocks:
        if light and total + size > PART_BYTES:
            yield _range(keys, light[0], light[-1])
            light, total = [], 0
        if size > PART_BYTES:
            heavy = _range(keys, block, block)
            yield from heavy.split(-(-heavy.size // HEAVY_KEYS))
        else:
            light.append(block)
            total += size
    if light:
        yield _range(keys, light[0], light[-1])


def _range(keys: KeyRange, first: int, last: int) -> KeyRange:
    """The keys of some blocks, as far as they are in the range."""
    return KeyRange(max(keys.first, first * BLOCK_KEYS), min(keys.last, last * BLOCK_KEYS + BLOCK_KEYS - 1))
