"""A reader holds a bounded number of bytes at a time, however large the rows are."""

import asyncio

import pytest

from app.pipeline.source.batches import BATCH_BYTES
from app.pipeline.source.factory import find_database
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.mysql import MySQL
from app.pipeline.source.mysql_parts import BLOCK_KEYS, HEAVY_KEYS, PART_BYTES, cut
from app.pipeline.source.reading import read_batches
from app.pipeline.source.scan import Scan
from app.pipeline.source.sqlite import ROWS_IN_STEP
from app.pipeline.tables import ATTEMPTS, HISTORY
from app.repository.factory import connect_dialect
from app.repository.schema import migrate
from tests.conftest import DIALECTS, MakeDatabase
from tests.filling import Filler
from tests.pipeline.lake.rows import START

ROWS, LARGE_BYTES, SMALL_ROWS = 128, 2**18, 2_000
LARGE = {
    "postgresql": f"repeat('x', {LARGE_BYTES})",
    "mysql": f"repeat('x', {LARGE_BYTES})",
    "sqlite": f"printf('%.{LARGE_BYTES}c', 'x')",
}
EVERYTHING = KeyRange(1, 10_000_000)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_batches_of_the_largest_rows_are_small(make_database: MakeDatabase, dialect: str) -> None:
    url = make_database(dialect)
    asyncio.run(fill(url, LARGE[dialect]))
    batches = list(read_batches(url, HISTORY, EVERYTHING))
    assert sum(batch.num_rows for batch in batches) == SMALL_ROWS + ROWS
    assert max(batch.nbytes for batch in batches) < BATCH_BYTES + (1 + ROWS_IN_STEP) * LARGE_BYTES
    database = find_database(url)
    if isinstance(database, MySQL):
        # What a statement brings is all in memory at once.
        parts = list(database._parts(Scan(HISTORY, HISTORY.columns), EVERYTHING))
        brought = [sum(batch.nbytes for batch in read_batches(url, HISTORY, part)) for part in parts]
        assert max(brought) <= max(PART_BYTES, (1 + HEAVY_KEYS) * LARGE_BYTES)
        assert len(list(database._parts(Scan(ATTEMPTS, ATTEMPTS.columns), EVERYTHING))) == 0


def test_light_blocks_go_together_and_heavy_ones_apart() -> None:
    third = PART_BYTES // 3
    blocks = [(0, third), (1, third), (7, third), (8, 2), (9, PART_BYTES + 1), (12, 5)]
    keys = KeyRange(100, 12 * BLOCK_KEYS + 9)
    light, next_to_it, *heavy, last = cut(keys, blocks)
    assert light == KeyRange(100, 8 * BLOCK_KEYS - 1)
    assert next_to_it == KeyRange(8 * BLOCK_KEYS, 9 * BLOCK_KEYS - 1)
    assert (heavy[0].first, heavy[-1].last) == (9 * BLOCK_KEYS, 10 * BLOCK_KEYS - 1)
    assert {part.size for part in heavy} == {HEAVY_KEYS}
    assert last == KeyRange(12 * BLOCK_KEYS, 12 * BLOCK_KEYS + 9)


def test_no_blocks_are_no_parts() -> None:
    assert list(cut(KeyRange(1, 10), [])) == []


async def fill(url: str, large: str) -> None:
    dialect = connect_dialect(url)
    await migrate(dialect)
    filler = Filler(dialect, "t", START)
    await filler.prepare(SMALL_ROWS)
    await filler.history("q", SMALL_ROWS)
    await filler.history("q", ROWS, result=large)
    await dialect.close()
