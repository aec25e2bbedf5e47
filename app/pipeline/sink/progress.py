"""How far a job is: a bar on a terminal, lines in the log elsewhere."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

logger = logging.getLogger(__name__)

Advance = Callable[[int], None]


@contextmanager
def show_progress(job: str, rows: int, done: int = 0) -> Iterator[Advance]:
    """Gives a function that is told how many rows were sent."""
    if sys.stderr.isatty():
        with _bar() as bar:
            task = bar.add_task(job, total=rows, completed=done)
            yield lambda sent: bar.advance(task, sent)
    else:
        yield _Lines(job, rows, done).advance


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


class _Lines:
    def __init__(self, job: str, rows: int, done: int) -> None:
        self._job = job
        self._rows = rows
        self._done = done

    def advance(self, sent: int) -> None:
        self._done += sent
        logger.info("job %s: %d of %d rows", self._job, self._done, self._rows)
