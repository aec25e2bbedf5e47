"""The arithmetic of a comparison: medians, spreads, ratios round by round, and whether a claim is met."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Figures = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Summary:
    """The middle of some values, with the least and the greatest of them."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """How far the values are apart, as a part of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """What a figure must be, on its own or as a ratio to another one of the same scenario.

    Figures are named `contestant.figure`. `at_least` tells whether more is better.
    """

    text: str
    scenario: str
    figure: str
    against: str | None
    required: float
    at_least: bool = True
    unit: str = "×"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a claim; without `measured` it could not be looked at."""

    claim: Claim
    measured: Summary | None

    @property
    def is_met(self) -> bool | None:
        """Whether the median keeps the claim; None if there is none."""
        if self.measured is None:
            return None
        if self.claim.at_least:
            return self.measured.median >= self.claim.required
        return self.measured.median <= self.claim.required


def summarise(values: Sequence[float]) -> Summary:
    """The summary of at least one value."""
    return Summary(median(values), min(values), max(values))


def ratios(figure: Sequence[float], against: Sequence[float]) -> list[float]:
    """The ratio of each round; a round in which the other figure is nothing says nothing."""
    return [ours / theirs for ours, theirs in zip(figure, against, strict=False) if theirs > 0]


def judge(claim: Claim, figures: Figures) -> Verdict:
    """Hold a claim against the figures of its scenario."""
    values = list(figures.get(claim.figure, ()))
    if claim.against is not None:
        values = ratios(values, figures.get(claim.against, ()))
    return Verdict(claim, summarise(values) if values else None)
