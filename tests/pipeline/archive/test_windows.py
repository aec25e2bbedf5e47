"""Windows hold every old row, and few of them are short."""

from itertools import pairwise

import pytest

from app.pipeline.archive.database import open_database
from app.pipeline.archive.windows import find_windows
from app.pipeline.tables import HISTORY
from tests.pipeline.archive.ledger import Ledger
from tests.pipeline.archive.requests import OLD, RECENT

BATCH_ROWS = 20


@pytest.mark.parametrize(
    ("rows", "windows"), [(20, [20]), (21, [21]), (40, [20, 20]), (41, [20, 21]), (45, [20, 20, 5])]
)
async def test_a_short_rest_goes_with_the_window_before(ledger: Ledger, rows: int, windows: list[int]) -> None:
    await ledger.finish_many(rows, OLD)
    async with open_database(ledger.url) as database:
        found = await find_windows(database, HISTORY, RECENT, BATCH_ROWS)
    assert [window.rows for window in found] == windows
    assert all(before.high == after.low for before, after in pairwise(found))
