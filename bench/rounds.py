"""Runs scenarios in interleaved rounds: each contestant in turn, then all of them again."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.databases import Databases
from bench.direct.reference import measure_reference
from bench.forms import Form
from bench.load import Generator
from bench.machine import describe_moment
from bench.peers.workshop import Workshop
from bench.scenario import CannotMeasureError, Contestant, Outcome, Scenario
from bench.stage import Stage

REFERENCE = "reference insert"
REFERENCE_SECONDS = 0.5

# Told what is being done, and that it is done.
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """Who is told how far the run is."""

    begin: Told
    step: Callable[[], None]
    note: Told


class Rounds:
    """The rounds of one run, on servers that all scenarios share."""

    def __init__(self, form: Form, databases: Databases, generator: Generator, progress: Progress) -> None:
        self._form = form
        self._databases = databases
        self._generator = generator
        self._progress = progress
        self._workshop = Workshop()
        self._reference_url: str | None = None

    def run(self, scenario: Scenario) -> Outcome:
        """Measure a scenario; what cannot be measured is noted and left out."""
        outcome = Outcome(scenario, self._form.name, describe_moment())
        with ExitStack() as stack:
            stage = Stage(self._form, self._databases, self._generator, self._workshop, stack)
            self._progress.begin(f"{scenario.name}: prepare")
            contestants = self._prepare(scenario, stage, outcome)
            for number in range(scenario.rounds or self._form.rounds):
                self._run_round(number, contestants, outcome)
                self._progress.step()
        return outcome

    def _prepare(self, scenario: Scenario, stage: Stage, outcome: Outcome) -> list[Contestant]:
        try:
            contestants = list(scenario.prepare(stage))
        except Exception as error:
            self._note(outcome, f"{scenario.name}: {_in_a_line(error)}")
            return []
        for note in stage.notes:
            self._note(outcome, note)
        return contestants

    def _run_round(self, number: int, contestants: list[Contestant], outcome: Outcome) -> None:
        outcome.add(REFERENCE, {"inserts": self._measure_reference()})
        for contestant in rotated(contestants, number):
            self._progress.begin(f"{outcome.scenario.name}, round {number + 1}: {contestant.name}")
            try:
                outcome.add(contestant.name, contestant.measure())
            except Exception as error:
                # One that cannot be had is not asked again; the others go on.
                self._note(outcome, f"{outcome.scenario.name}, {contestant.name}: {_in_a_line(error)}")
                contestants.remove(contestant)

    def _measure_reference(self) -> float:
        if self._reference_url is None:
            self._reference_url = self._databases.create("postgresql")
        return measure_reference(self._reference_url, REFERENCE_SECONDS)

    def _note(self, outcome: Outcome, note: str) -> None:
        outcome.notes.append(note)
        self._progress.note(note)


def rotated(contestants: Sequence[Contestant], by: int) -> list[Contestant]:
    """Another one goes first each round, so that nobody always follows the same one."""
    start = by % len(contestants) if contestants else 0
    return [*contestants[start:], *contestants[:start]]


def _in_a_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, CannotMeasureError) else f"{type(error).__name__}: {text}"
