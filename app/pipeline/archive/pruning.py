"""Taking out of the database what a batch of the lake holds."""

import asyncio
import time
from collections.abc import Iterator
from typing import cast

import pyarrow as pa

from app.pipeline.archive.adapters import CheckLock
from app.pipeline.archive.database import ArchivedDatabase
from app.pipeline.lake import Lake
from app.pipeline.lake.batches import OnStep
from app.pipeline.lake.lake import KEPT
from app.pipeline.lake.manifests import Manifest, Part
from app.pipeline.tables import TABLES, Table

# For each row of a transaction so many ids at most lie between its first and its last: it may look at all of them.
SPREAD = 8


class Pruner:
    """Prunes batches of a lake, while the lock on the database is held."""

    def __init__(self, lake: Lake, database: ArchivedDatabase, check_lock: CheckLock, on_step: OnStep) -> None:
        self._lake = lake
        self._database = database
        self._check_lock = check_lock
        self._on_step = on_step

    async def prune(self, manifest: Manifest) -> int:
        """Deletes the rows of a committed batch and marks it; tells how many there were, unchanged.

        The others were taken by somebody else meanwhile, a cleanup for instance; they are in the lake like the rest.
        """
        deleted = 0
        for name, part in manifest.parts.items():
            deleted += await self._prune_part(TABLES[name], part)
        self._on_step("pruned")
        await asyncio.to_thread(self._lake.mark_pruned, manifest.batch, deleted)
        self._on_step("marked")
        return deleted

    async def _prune_part(self, table: Table, part: Part) -> int:
        await self._check_lock()
        pace = self._database.adapter.pace
        waiting = slices(await asyncio.to_thread(self._keys, table, part), pace.rows)
        # Each takes the next slice that nobody has taken; none is left at work when another fails.
        deleted = await asyncio.gather(
            *(self._delete(table, waiting) for _ in range(pace.at_once)), return_exceptions=True
        )
        for outcome in deleted:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(cast(list[int], deleted))

    async def _delete(self, table: Table, waiting: Iterator[pa.Table]) -> int:
        deleted = 0
        for some in waiting:
            started = time.monotonic()
            ids, instants = (column.to_pylist() for column in some.columns)
            deleted += await self._database.delete(f"delete_{table.name}", ids, instants)
            self._on_step("pruning")
            await self._database.rest(started)
        return deleted

    def _keys(self, table: Table, part: Part) -> pa.Table:
        """Ids and instants out of the files themselves, in the order in which the database keeps the rows."""
        keys = self._lake.read_files(table, [part]).select(table.key, KEPT[table.name]).toArrow()
        instants = keys.column(1).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        return keys.set_column(1, "instant", instants).sort_by(table.key)


def slices(keys: pa.Table, rows: int) -> Iterator[pa.Table]:
    """Keys by so many, or fewer where they lie far apart."""
    ids = keys.column(0).to_numpy()
    start = 0
    while start < len(ids):
        near = int(ids.searchsorted(ids[start] + rows * SPREAD))
        end = min(start + rows, near)
        yield keys.slice(start, end - start)
        start = end
