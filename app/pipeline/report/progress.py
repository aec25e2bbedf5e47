"""How far the report is: a bar on a terminal, a line for each step elsewhere."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.pipeline.report.figures import OnStep

logger = logging.getLogger(__name__)


@contextmanager
def show_steps(steps: int) -> Iterator[OnStep]:
    """Gives a function that is told what comes next; it is called so many times."""
    if not sys.stderr.isatty():
        yield lambda step: logger.info("report: %s", step)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting", total=steps)

        def begin(step: str) -> None:
            begun = progress.tasks[task].description != "starting"
            progress.update(task, description=step, advance=1 if begun else 0)

        yield begin
        progress.update(task, description="done", completed=steps)
