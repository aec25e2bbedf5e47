"""The plot: each claim as measured, next to what is required."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from bench.ratios import Summary, Verdict

MET, MISSED = "#2a7f62", "#c0392b"


def draw(found: Sequence[Verdict], path: Path) -> None:
    """Draw how many times over each claim is kept, with the spread of the rounds; the line at 1 is the requirement."""
    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "leasemq"
    from matplotlib import pyplot  # noqa: PLC0415  the backend is chosen first

    measured = [(verdict, verdict.measured) for verdict in reversed(found) if verdict.measured is not None]
    figure, axes = pyplot.subplots(figsize=(11, 0.34 * len(measured) + 1.2))
    for row, (verdict, summary) in enumerate(measured):
        middle, low, high = _kept(verdict, summary)
        colour = MET if verdict.is_met else MISSED
        axes.plot([low, high], [row, row], color=colour, linewidth=3, alpha=0.4, solid_capstyle="round")
        axes.plot([middle], [row], "o", color=colour)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(measured)), [verdict.claim.text for verdict, _ in measured], fontsize=7)
    axes.set_xlabel("times the requirement (right of the line: met); dot: median, bar: least to greatest round")
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _kept(verdict: Verdict, summary: Summary) -> tuple[float, float, float]:
    """How many times over the claim is kept: median, least, greatest."""
    values = (summary.median, summary.low, summary.high)
    required = verdict.claim.required
    if verdict.claim.at_least:
        middle, low, high = (max(value, 1e-3) / required for value in values)
        return middle, low, high
    middle, high, low = (required / max(value, 1e-3) for value in values)
    return middle, low, high
