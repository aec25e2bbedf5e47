"""What a scenario is: some contestants that are measured in turn, round after round."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.ratios import Claim

if TYPE_CHECKING:
    from bench.stage import Stage

Measured = Mapping[str, float]


class CannotMeasureError(Exception):
    """A contestant is not to be had here; the message says why in a line."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One side of a comparison: each call of `measure` is one round's figures by name."""

    name: str
    measure: Callable[[], Measured]


Prepare = Callable[["Stage"], Sequence[Contestant]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`prepare` starts what the contestants need; the stage ends it when the scenario is over."""

    name: str
    title: str
    prepare: Prepare
    claims: Sequence[Claim] = ()
    # A scenario may have its own number of rounds, whatever the form.
    rounds: int | None = None
    # The figures that the table shows, in this order.
    shown: Sequence[str] = ("cycles",)


@dataclass(slots=True)
class Outcome:
    """What a scenario measured: the values of each `contestant.figure`, a value a round."""

    scenario: Scenario
    form: str
    # When it began, and the load of the machine at that moment.
    moment: dict[str, object]
    figures: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, contestant: str, measured: Measured) -> None:
        """Keep the figures of one round."""
        for name, value in measured.items():
            self.figures.setdefault(f"{contestant}.{name}", []).append(value)
