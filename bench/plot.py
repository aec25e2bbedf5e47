"""The plots: how far each claim is kept, and how fast the contestants are next to each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from bench.ratios import Summary, Verdict, summarise
from bench.rounds import REFERENCE
from bench.scenario import Outcome

MET, MISSED, PLAIN = "#2a7f62", "#c0392b", "#4a6fa5"
# Scenarios whose contestants are worth a look side by side, and by which figure.
COMPARED = {"single": "cycles", "peers": "cycles", "batch": "cycles", "drain": "process"}


def draw_claims(found: Sequence[Verdict], path: Path) -> None:
    """Draw how many times over each claim is kept, with the spread of the rounds; the line at 1 is the requirement."""
    measured = [(verdict, verdict.measured) for verdict in reversed(found) if verdict.measured is not None]
    figure = Figure(figsize=(11, 0.34 * len(measured) + 1.2))
    axes = figure.subplots()
    for row, (verdict, summary) in enumerate(measured):
        middle, low, high = _kept(verdict, summary)
        colour = MET if verdict.is_met else MISSED
        axes.plot([low, high], [row, row], color=colour, linewidth=3, alpha=0.4, solid_capstyle="round")
        axes.plot([middle], [row], "o", color=colour)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(measured)), [verdict.claim.text for verdict, _ in measured], fontsize=7)
    axes.set_xlabel("times the requirement; right of the line: met; bar: least to greatest round", fontsize=8)
    _save(figure, path)


def draw_rates(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the rates of the contestants, a panel a scenario, with the spread of the rounds."""
    shown = [outcome for outcome in outcomes if outcome.scenario.name in COMPARED]
    figure = Figure(figsize=(11, 3.2 * max(1, len(shown))))
    panels = figure.subplots(max(1, len(shown)), squeeze=False)[:, 0]
    for outcome, axes in zip(shown, panels, strict=False):
        _draw_panel(outcome, COMPARED[outcome.scenario.name], axes)
    _save(figure, path)


def _draw_panel(outcome: Outcome, figure_name: str, axes: Any) -> None:
    rates = {
        contestant: summarise(values)
        for name, values in outcome.figures.items()
        for contestant, _, figure in [name.rpartition(".")]
        if figure == figure_name and contestant != REFERENCE
    }
    medians = [summary.median for summary in rates.values()]
    errors = [
        [summary.median - summary.low for summary in rates.values()],
        [summary.high - summary.median for summary in rates.values()],
    ]
    axes.barh(list(rates), medians, xerr=errors, color=PLAIN, ecolor="black", error_kw={"linewidth": 0.8})
    axes.invert_yaxis()
    axes.set_title(outcome.scenario.title, fontsize=9, loc="left")
    axes.set_xlabel("tasks a second", fontsize=8)
    axes.tick_params(labelsize=8)


def _save(figure: Figure, path: Path) -> None:
    for axes in figure.axes:
        axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    # The same figures give the same file.
    with mpl.rc_context({"svg.hashsalt": "leasemq", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def _kept(verdict: Verdict, summary: Summary) -> tuple[float, float, float]:
    """How many times over the claim is kept: median, least, greatest."""
    values = (summary.median, summary.low, summary.high)
    required = verdict.claim.required
    if verdict.claim.at_least:
        middle, low, high = (max(value, 1e-3) / required for value in values)
        return middle, low, high
    middle, high, low = (required / max(value, 1e-3) for value in values)
    return middle, low, high
