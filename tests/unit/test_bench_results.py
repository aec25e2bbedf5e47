"""What is kept of a run, and what the next one keeps of it."""

from pathlib import Path

import pytest

from bench.results import Results, merge, read_earlier, read_results, write_results
from bench.scenario import Outcome, Scenario

FIRST, SECOND, GONE = (Scenario(name, name, prepare=lambda stage: []) for name in ("first", "second", "gone"))
SCENARIOS = (FIRST, SECOND)


def outcome(scenario: Scenario, value: float) -> Outcome:
    return Outcome(scenario, "default", {"load": 0.1}, {"hare.cycles": [value]})


def test_what_was_not_measured_again_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "results" / "latest.json"
    write_results(Results({"cores": 2}, [outcome(FIRST, 1.0), outcome(SECOND, 1.0), outcome(GONE, 1.0)]), path)

    kept = merge(read_earlier(path, SCENARIOS), Results({"cores": 4}, [outcome(SECOND, 2.0)]), SCENARIOS)

    assert kept == Results({"cores": 4}, [outcome(FIRST, 1.0), outcome(SECOND, 2.0)])


def test_before_the_first_run_there_is_nothing_to_keep(tmp_path: Path) -> None:
    run = Results({"cores": 4}, [outcome(SECOND, 2.0), outcome(FIRST, 2.0)])
    kept = merge(read_earlier(tmp_path / "latest.json", SCENARIOS), run, SCENARIOS)
    assert kept.outcomes == [outcome(FIRST, 2.0), outcome(SECOND, 2.0)]


def test_figures_that_are_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_results(tmp_path / "latest.json", SCENARIOS)
