"""The results as Markdown: what must be shown, and what each scenario measured."""

from collections.abc import Iterable, Sequence

from bench.ratios import Summary, Verdict, judge, ratios, summarise
from bench.results import Results
from bench.rounds import REFERENCE
from bench.scenario import Outcome

# Figures that are rates of tasks, and so can be held against the reference.
RATES = {"cycles": "cycles/s", "enqueue": "enqueue/s", "process": "process/s", "requests": "requests/s"}
MARKS = {True: "yes", False: "**no**", None: "not measured"}


def verdicts(results: Results) -> list[Verdict]:
    """What came of the claims of the scenarios that were run."""
    return [judge(claim, outcome.figures) for outcome in results.outcomes for claim in outcome.scenario.claims]


def tables(results: Results) -> str:
    """All tables of a run."""
    parts = [_machine(results), _claims(verdicts(results)), *map(_scenario, results.outcomes), _notes(results.notes)]
    return "\n\n".join(part for part in parts if part)


def one_line(verdict: Verdict) -> str:
    """A verdict for the terminal."""
    measured = "not measured" if verdict.measured is None else _summary(verdict.measured, verdict.claim.unit)
    return f"{MARKS[verdict.is_met].strip('*'):>12}  {verdict.claim.text}: {measured}, required {_required(verdict)}"


def _machine(results: Results) -> str:
    machine = results.machine
    return (
        f"Measured on {machine['cores']} cores ({machine['processor']}), {machine['memory_gib']} GiB,"
        f" Python {machine['python']}."
    )


def _claims(found: Sequence[Verdict]) -> str:
    rows = [(verdict.claim.text, _required(verdict), _measured(verdict), MARKS[verdict.is_met]) for verdict in found]
    return "## What it must show\n\n" + _table(("What", "Required", "Measured (least – greatest)", "Met"), rows)


def _scenario(outcome: Outcome) -> str:
    scenario = outcome.scenario
    contestants = [name for name in dict.fromkeys(n.rpartition(".")[0] for n in outcome.figures) if name != REFERENCE]
    shown = [f for f in scenario.shown if any(f"{contestant}.{f}" in outcome.figures for contestant in contestants)]
    rows = [
        (name, *_to_reference(outcome, name), *(_cell(outcome.figures.get(f"{name}.{figure}")) for figure in shown))
        for name in contestants
    ]
    relative = ["to reference"] if scenario.shown[0] in RATES else []
    table = _table(("", *relative, *map(_heading, shown)), rows)
    reference = _cell(outcome.figures.get(f"{REFERENCE}.inserts"))
    return f"## {scenario.title}\n\n{_how(outcome)} Reference inserts a second: {reference}.\n\n{table}"


def _to_reference(outcome: Outcome, contestant: str) -> list[str]:
    """The rate as a ratio to the reference of the same round, if a rate is what the scenario shows."""
    figure = outcome.scenario.shown[0]
    if figure not in RATES:
        return []
    found = ratios(outcome.figures.get(f"{contestant}.{figure}", ()), outcome.figures.get(f"{REFERENCE}.inserts", ()))
    return [_cell(found)]


def _how(outcome: Outcome) -> str:
    rounds = max((len(values) for values in outcome.figures.values()), default=0)
    moment = f"begun at {outcome.moment['at']} with a load of {outcome.moment['load']}"
    return f"Scenario `{outcome.scenario.name}`, {outcome.form} form, rounds: {rounds}, {moment}."


def _notes(notes: Sequence[str]) -> str:
    return "## Notes\n\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _required(verdict: Verdict) -> str:
    claim = verdict.claim
    return f"{'≥' if claim.at_least else '≤'} {claim.required:g}{claim.unit}"


def _measured(verdict: Verdict) -> str:
    return "" if verdict.measured is None else _summary(verdict.measured, verdict.claim.unit)


def _summary(summary: Summary, unit: str) -> str:
    return f"{_number(summary.median)}{unit} ({_number(summary.low)} – {_number(summary.high)})"


def _cell(values: Sequence[float] | None) -> str:
    if not values:
        return ""
    summary = summarise(values)
    if len(values) == 1:
        return _number(summary.median)
    return f"{_number(summary.median)} ({_number(summary.low)} – {_number(summary.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _heading(figure: str) -> str:
    return RATES.get(figure, figure.replace("_", " "))
