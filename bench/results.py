"""The raw figures of a run as JSON, written and read."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.scenario import Outcome, Scenario


@dataclass(slots=True)
class Results:
    """All that a run measured."""

    machine: dict[str, object]
    outcomes: list[Outcome]

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        return [note for outcome in self.outcomes for note in outcome.notes]


def write_results(results: Results, path: Path) -> None:
    """Write the figures, rounded to what can be told apart."""
    document = {
        "machine": results.machine,
        "scenarios": {outcome.scenario.name: _outcome(outcome) for outcome in results.outcomes},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_results(path: Path, scenarios: Sequence[Scenario]) -> Results:
    """Read what was written; scenarios that are no more are left out."""
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = document["scenarios"]
    outcomes = [Outcome(scenario, **kept[scenario.name]) for scenario in scenarios if scenario.name in kept]
    return Results(document["machine"], outcomes)


def read_earlier(path: Path, scenarios: Sequence[Scenario]) -> Results:
    """What the last run left; before the first one, nothing."""
    return read_results(path, scenarios) if path.exists() else Results({}, [])


def merge(old: Results, new: Results, scenarios: Sequence[Scenario]) -> Results:
    """The new outcomes, and those of the old run that were not measured again, in the order of the scenarios."""
    measured = {outcome.scenario.name: outcome for outcome in (*old.outcomes, *new.outcomes)}
    return Results(new.machine, [measured[s.name] for s in scenarios if s.name in measured])


def _outcome(outcome: Outcome) -> dict[str, object]:
    figures = {name: _rounded(values) for name, values in outcome.figures.items()}
    return {"form": outcome.form, "moment": outcome.moment, "figures": figures, "notes": outcome.notes}


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
