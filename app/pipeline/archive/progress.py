"""How far the archive is: a bar on a terminal, a line for each batch elsewhere."""

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.pipeline.lake.manifests import Manifest

logger = logging.getLogger(__name__)


class Watcher(ABC):
    """Hears of what has been done."""

    # How many rows there were in batches that an earlier run had left.
    finished_rows = 0

    @abstractmethod
    def begin(self, table: str, rows: int) -> None:
        """So many rows of a table are to be looked at."""

    @abstractmethod
    def copied(self, rows: int, manifest: Manifest | None) -> None:
        """So many rows were looked at, and are in the lake as a batch, if they were to go."""

    @abstractmethod
    def pruned(self, manifest: Manifest, deleted: int) -> None:
        """So many rows of a batch were deleted from the database."""

    def finished(self, manifest: Manifest, deleted: int) -> None:
        """The same, of a batch that an earlier run had left."""
        self.finished_rows += manifest.rows
        self.pruned(manifest, deleted)


class LogLines(Watcher):
    """See `Watcher`."""

    def begin(self, table: str, rows: int) -> None:
        logger.info("archiving %s: looking at %d old rows", table, rows)

    def copied(self, rows: int, manifest: Manifest | None) -> None:
        if manifest is not None:
            logger.info("%d rows are in the lake as batch %s", manifest.rows, manifest.batch)

    def pruned(self, manifest: Manifest, deleted: int) -> None:
        logger.info("batch %s: %d of %d rows deleted from the database", manifest.batch, deleted, manifest.rows)


class Bar(Watcher):
    """See `Watcher`."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("recovering", total=None)

    def begin(self, table: str, rows: int) -> None:
        self._progress.reset(self._task, total=rows, description=f"archiving {table}")

    def copied(self, rows: int, manifest: Manifest | None) -> None:
        self._progress.advance(self._task, rows)

    def pruned(self, manifest: Manifest, deleted: int) -> None:
        """The bar tells of what is safe in the lake."""


@contextmanager
def watch() -> Iterator[Watcher]:
    """Shows progress on standard error."""
    if not sys.stderr.isatty():
        yield LogLines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Bar(progress)
