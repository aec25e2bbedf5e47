"""`python -m bench`: run the scenarios, tell what came of them, and keep the figures."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.databases import Databases
from bench.document import put_between_marks
from bench.forms import DEFAULT, FULL, QUICK, Form
from bench.load import build_generator
from bench.machine import describe_machine
from bench.plot import draw_claims, draw_rates
from bench.report import one_line, tables, verdicts
from bench.results import Results, merge, read_earlier, read_results, write_results
from bench.rounds import Progress as Told
from bench.rounds import Rounds
from bench.scenario import Scenario
from bench.scenarios import SCENARIOS

ROOT = Path(__file__).parents[1]
LATEST = ROOT / "bench" / "results" / "latest.json"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
PUBLISHED = ROOT / "docs" / "benchmarks.json"
CLAIMS_PLOT = ROOT / "docs" / "benchmarks-claims.svg"
RATES_PLOT = ROOT / "docs" / "benchmarks-rates.svg"
# On the disk, where the system's folder for short-lived files may be in memory.
DISK = Path("/var/tmp")


def main() -> int:
    """Run what is asked for."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if DISK.is_dir():
        tempfile.tempdir = str(DISK)
    results = read_results(options.render, SCENARIOS) if options.render else _run(options)
    print(tables(results), *map(one_line, verdicts(results)), sep="\n")
    if options.publish:
        publish(results)
    return 0


def publish(results: Results) -> None:
    """Put the results into the documentation: figures, plots and tables."""
    write_results(results, PUBLISHED)
    draw_claims(verdicts(results), CLAIMS_PLOT)
    draw_rates(results.outcomes, RATES_PLOT)
    plots = f"![How far each requirement is met]({CLAIMS_PLOT.name})\n\n![Rates]({RATES_PLOT.name})"
    put_between_marks(DOCUMENT, f"{plots}\n\n{tables(results)}")


def _run(options: argparse.Namespace) -> Results:
    form = _form(options)
    chosen = _chosen(options.only)
    # Scenarios can be run one by one: what was measured before and not again is kept.
    earlier = read_earlier(LATEST, SCENARIOS)
    results = Results(describe_machine(), [])
    with ExitStack() as stack:
        progress = stack.enter_context(_progress())
        bar = progress.add_task("", total=sum(scenario.rounds or form.rounds for scenario in chosen))
        told = Told(
            begin=lambda what: progress.update(bar, description=what),
            step=lambda: progress.advance(bar),
            note=lambda note: progress.console.print(
                note, style="yellow", markup=False, highlight=False, soft_wrap=True
            ),
        )
        told.begin("build the load generator")
        generator = build_generator(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        if not generator.compiled:
            told.note("There is no C compiler: a slower load generator in Python is used, and may be the limit.")
        rounds = Rounds(form, Databases(stack), generator, told)
        for scenario in chosen:
            if not progress.console.is_terminal:
                progress.console.print(scenario.name)
            results.outcomes.append(rounds.run(scenario))
            write_results(merge(earlier, results, SCENARIOS), LATEST)
    return merge(read_earlier(PUBLISHED, SCENARIOS), results, SCENARIOS) if options.publish else results


def _form(options: argparse.Namespace) -> Form:
    form = FULL if options.full else QUICK if options.quick else DEFAULT
    return replace(form, rounds=options.rounds) if options.rounds else form


def _chosen(names: Sequence[str]) -> list[Scenario]:
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such scenario: {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(SCENARIOS)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="SCENARIO", help="these scenarios and no others")
    parser.add_argument("--rounds", type=int, help="how often each contestant is measured")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="about five minutes")
    size.add_argument("--full", action="store_true", help="full sizes, and a steady run of ten minutes")
    parser.add_argument("--publish", action="store_true", help="put the results into docs/benchmarks.md")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing: take the figures from a file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
