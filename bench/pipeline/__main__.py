"""`python -m bench.pipeline`: run the pipeline's scenarios, tell what came of them, and keep the figures."""

import argparse
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.databases import Databases
from bench.document import put_between_marks
from bench.forms import DEFAULT, QUICK
from bench.load import build_generator
from bench.machine import describe_machine
from bench.pipeline.scenarios import SCENARIOS
from bench.pipeline.session import session
from bench.report import one_line, tables, verdicts
from bench.results import Results, merge, read_earlier, write_results
from bench.rounds import Progress as Told
from bench.rounds import Rounds
from bench.scenario import Scenario

ROOT = Path(__file__).parents[2]
LATEST = ROOT / "bench" / "results" / "pipeline.json"
DOCUMENT = ROOT / "docs" / "pipeline" / "benchmarks.md"
PUBLISHED = ROOT / "docs" / "pipeline" / "benchmarks.json"
# On the disk, where the system's folder for short-lived files may be in memory.
DISK = Path("/var/tmp")


def main() -> int:
    """Run what is asked for."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if DISK.is_dir():
        tempfile.tempdir = str(DISK)
    results = _run(options)
    print(tables(results), *map(one_line, verdicts(results)), sep="\n")
    if options.publish:
        write_results(results, PUBLISHED)
        put_between_marks(DOCUMENT, tables(results))
    return 0


def _run(options: argparse.Namespace) -> Results:
    form = QUICK if options.quick else DEFAULT
    form = replace(form, rounds=options.rounds) if options.rounds else form
    chosen = [scenario for scenario in SCENARIOS if not options.only or scenario.name in options.only]
    # Scenarios can be run one by one: what was measured before and not again is kept.
    earlier = read_earlier(LATEST, SCENARIOS)
    results = Results(describe_machine(), [])
    with ExitStack() as stack:
        told = _show(stack, chosen, form.rounds)
        told.begin("build the load generator")
        generator = build_generator(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        told.begin("start Spark")
        stack.callback(session().stop)
        rounds = Rounds(form, Databases(stack), generator, told)
        for scenario in chosen:
            results.outcomes.append(rounds.run(scenario))
            write_results(merge(earlier, results, SCENARIOS), LATEST)
    return merge(read_earlier(PUBLISHED, SCENARIOS), results, SCENARIOS) if options.publish else results


def _show(stack: ExitStack, chosen: list[Scenario], rounds: int) -> Told:
    """A bar on a terminal, lines elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = stack.enter_context(Progress(*columns, console=Console(stderr=True)))
    bar = progress.add_task("", total=len(chosen) * rounds)
    told = progress.console.print

    def begin(what: str) -> None:
        progress.update(bar, description=what)
        if not progress.console.is_terminal:
            told(what)

    return Told(begin, lambda: progress.advance(bar), lambda note: told(note, markup=False, soft_wrap=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", nargs="+", default=[], choices=names, metavar="SCENARIO", help="these and no others")
    parser.add_argument("--rounds", type=int, help="how often each contestant is measured")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--publish", action="store_true", help="put the results into docs/pipeline/benchmarks.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
