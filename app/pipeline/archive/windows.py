"""Which rows there are to archive, found by many short statements: ranges of ids with a bounded number of rows."""

from dataclasses import dataclass
from datetime import UTC, datetime

from app.pipeline.archive.database import ArchivedDatabase
from app.pipeline.tables import ATTEMPTS, Table

# What is left at the end is no batch of its own if it is so small a part of one.
LEAST_SHARE = 0.1
# How many rows a batch may have: enough that Spark's own costs are small, few enough that a kill costs little.
BATCH_ROWS = 500_000
BARREN_ROWS = 500_000
EVER = datetime(1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """Rows whose id is above `low` and at most `high`, of which so many are old enough."""

    low: int
    high: int
    rows: int


async def find_windows(
    database: ArchivedDatabase, table: Table, cut_off: datetime, batch_rows: int = BATCH_ROWS
) -> list[Window]:
    """Windows that hold the old rows.

    Ids grow with time, so the search ends where many rows in a row are not old: one behind them that was entered late
    is found by a later run, when all that came before it is old too.
    """
    windows: list[Window] = []
    low = barren = 0
    while barren < BARREN_ROWS:
        [found] = await database.rows(f"upcoming_{table.name}", low=low, cut_off=cut_off, limit=batch_rows)
        if found["high"] is None:
            break
        high, old = int(found["high"]), int(found["old_rows"])
        if old:
            _append(windows, Window(low, high, old), batch_rows)
        low, barren = high, 0 if old else barren + batch_rows
    return windows


def _append(windows: list[Window], window: Window, batch_rows: int) -> None:
    """Adds a window, to the one before it if it is the short rest behind that."""
    if windows and windows[-1].high == window.low and window.high - window.low < batch_rows * LEAST_SHARE:
        before = windows.pop()
        window = Window(before.low, window.high, before.rows + window.rows)
    windows.append(window)


async def count_rows(
    database: ArchivedDatabase, table: Table, windows: list[Window], cut_off: datetime, *, dead_letters: bool
) -> int:
    """How many rows would go, if the tables before this one went before."""
    if table is not ATTEMPTS:
        return sum(window.rows for window in windows)
    total = 0
    for window in windows:
        [counted] = await database.rows(
            "count_attempts",
            low=window.low,
            high=window.high,
            cut_off=cut_off,
            finished_from=cut_off,
            failed_from=cut_off if dead_letters else EVER,
        )
        total += counted["attempts"]
    return total
