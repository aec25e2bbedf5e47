"""What a reader should know first: the figures in words, some of them as cards, and what stands out."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.pipeline.report.figures import Figures, Row
from app.pipeline.report.page import words
from app.pipeline.report.page.html import Child, Html, markup, tag
from app.pipeline.report.page.marks import nothing
from app.pipeline.report.page.plots import sparkline


def headline(figures: Figures) -> Html:
    """Title, period and lead."""
    return markup(tag("h1", "What the queue did"), tag("p", _when(figures), class_="when"), _lead(figures))


def _when(figures: Figures) -> str:
    made = f"made {words.instant(figures.made_at)}"
    if figures.span is None:
        return made
    first, last = words.instant(figures.span.first), words.instant(figures.span.last)
    source = "lake and live database" if figures.is_live else "lake"
    return f"{first} – {last} · from the {source} · {made}"


def _lead(figures: Figures) -> Html:
    tasks = figures.only_row("tasks")
    if not tasks:
        return nothing(_why_nothing(figures))
    return tag("p", *_sentences(figures, tasks, figures.only_row("attempts")), class_="lead")


def _why_nothing(figures: Figures) -> str:
    if figures.is_live:
        return "No task came to an end in this time, neither in the lake nor in the live database."
    return (
        "The lake holds no task that came to an end in this time. It is filled by leasemq pipeline archive; what is not"
        " archived yet is read with --live."
    )


def _sentences(figures: Figures, tasks: Row, attempts: Row) -> Iterator[Child]:
    yield tag("b", words.count(tasks["tasks"], "task"))
    yield f" came to an end in {words.duration(figures.span.duration)}" if figures.span else None
    if tasks["success_rate"] is None:
        yield "; none of them was done or died. "
    else:
        yield markup("; ", tag("b", words.percent(tasks["success_rate"])), " of those that ran to a result succeeded, ")
        yield f"{words.number(tasks['dead'])} died. "
    if tasks["wait_p50_seconds"] is not None:
        yield markup("Half were picked up within ", _bold(tasks["wait_p50_seconds"]), " of being due, ")
        yield markup("95 % within ", _bold(tasks["wait_p95_seconds"]), ". ")
    if attempts.get("runs"):
        yield markup("The typical attempt took ", _bold(attempts["run_p50_seconds"]), ", the slowest in a hundred ")
        yield markup(_bold(attempts["run_p99_seconds"]), " or more.")


def _bold(seconds: float) -> Html:
    return tag("b", words.seconds(seconds))


# With more characters a figure would not fit its card.
SHORT_VALUE = 8


@dataclass(frozen=True, slots=True)
class Card:
    """A figure at a glance; `course` is the figure of each bucket that shows how it went."""

    what: str
    value: str
    more: str
    course: str
    colour: str


def cards(figures: Figures) -> Html | None:
    """A few figures at a glance, with their course."""
    tasks, attempts = figures.only_row("tasks"), figures.only_row("attempts")
    if not tasks:
        return None
    of_tasks = [_shown(card, figures, "tasks_by_hour") for card in _task_cards(figures, tasks)]
    of_attempts = [_shown(card, figures, "attempts_by_hour") for card in _attempt_cards(attempts)]
    return tag("div", of_tasks, of_attempts, class_="cards")


def _task_cards(figures: Figures, tasks: Row) -> Iterator[Card]:
    hours = max(1.0, figures.span.duration.total_seconds() / 3600) if figures.span else 1.0
    an_hour = f"{words.rate(tasks['tasks'] / hours)} an hour"
    yield Card("Tasks finished", words.number(tasks["tasks"]), an_hour, "tasks", "c1")
    yield Card("Succeeded", words.percent(tasks["success_rate"]), f"{words.number(tasks['dead'])} died", "dead", "bad")
    median = f"half within {words.seconds(tasks['wait_p50_seconds'])}"
    yield Card("Wait, p95", words.seconds(tasks["wait_p95_seconds"]), median, "wait_p95_seconds", "c5")


def _attempt_cards(attempts: Row) -> Iterator[Card]:
    if attempts.get("runs"):
        median = f"half within {words.seconds(attempts['run_p50_seconds'])}"
        yield Card("Run time, p95", words.seconds(attempts["run_p95_seconds"]), median, "run_p95_seconds", "c3")
    if attempts.get("failed_seconds_share") is not None:
        cost, spent = words.percent(attempts["failed_seconds_share"]), words.seconds(attempts["failed_seconds"])
        yield Card("Spent on failures", cost, f"{spent} of work", "failed_seconds", "c2")
    if attempts:
        of_attempts = f"{words.percent(attempts['lost_share'])} of attempts"
        yield Card("Lost leases", words.number(attempts["lost"]), of_attempts, "lost", "c4")


def _shown(card: Card, figures: Figures, table: str) -> Html:
    values = {row["hour"]: row[card.course] for row in figures.rows(table)}
    starts = figures.span.starts if figures.span else []
    return tag(
        "div",
        tag("span", card.what, class_="what"),
        tag("span", card.value, class_="value long" if len(card.value) > SHORT_VALUE else "value"),
        tag("span", card.more, class_="more"),
        sparkline([values.get(start) for start in starts], card.colour),
    )
