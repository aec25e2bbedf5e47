"""Wait and run time: over time, and by queue, type and tenant."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.pipeline.report.coverage import Logged
from app.pipeline.report.figures import Figures, Row, busiest
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import axis_of, folded, label, note, section
from app.pipeline.report.page.html import Html, markup, tag
from app.pipeline.report.page.marks import nothing, ranges
from app.pipeline.report.page.plots import Series, duration_lines


@dataclass(frozen=True, slots=True)
class Subject:
    """A duration: its title, the tables it is in, the prefix of its figures, and how many there are of it."""

    title: str
    anchor: str
    table: str
    prefix: str
    counted: str
    sub: str
    empty: str


WAIT = Subject(
    "Wait time", "wait", "tasks", "wait", "waits_known",
    "From the moment a task is due to its first lease.", "No task was leased in this time whose wait is known.",
)  # fmt: skip
RUN = Subject(
    "Run time", "run", "attempts", "run", "runs",
    "From lease to settle, of every attempt that a worker ended itself, well or not.",
    "The attempt log holds no run times of this time.",
)  # fmt: skip


def wait_time(figures: Figures) -> Html:
    return _times(figures, WAIT, note(_left_out(figures.only_row("tasks")), " ", _by_queue_left_out(figures)))


def run_time(figures: Figures) -> Html:
    return _times(figures, RUN, note(_unlogged(figures)))


def _times(figures: Figures, subject: Subject, small_print: Html) -> Html:
    if figures.span is None or not figures.only_row(subject.table).get(subject.counted):
        return section(subject.title, subject.anchor, subject.sub, nothing(subject.empty), small_print)
    rows = {row["hour"]: row for row in figures.rows(f"{subject.table}_by_hour")}
    series = [
        Series(name, name, [rows.get(at, {}).get(f"{subject.prefix}_{name}_seconds") for at in figures.span.starts])
        for name in ("p99", "p95", "p50")
    ]
    plot = duration_lines(axis_of(figures.span), series, f"{subject.title} over time: p50, p95 and p99")
    return section(subject.title, subject.anchor, subject.sub, plot, _by_names(figures, subject), small_print)


def _by_names(figures: Figures, subject: Subject) -> Html:
    def by(dimension: str) -> Html:
        rows = busiest(figures.rows(f"{subject.table}_by_{dimension}"), subject.counted)
        named = [{**row, "name": label(row[dimension], figures, dimension)} for row in rows]
        return _ranges(named, subject)

    return markup(tag("h3", "By queue"), by("queue"), folded("By type", by("type")), folded("By tenant", by("tenant")))


def _ranges(rows: Sequence[Row], subject: Subject) -> Html:
    noun = "tasks" if subject is WAIT else "attempts"
    counted = [{**row, noun: row[subject.counted]} for row in rows]
    return ranges(counted, subject.prefix, noun, lambda row: str(row["name"]), subject.empty)


def _left_out(tasks: Row) -> str:
    if not tasks.get("waits_unknown"):
        return "The wait of every task that was started is known."
    share = words.percent(tasks["waits_unknown_share"])
    return (
        f"{words.count(tasks['waits_unknown'], 'task')} ({share} of those that were started) are left out: a retry or a"
        " requeue has overwritten the time at which they were first due."
    )


def _by_queue_left_out(figures: Figures) -> str | None:
    rows = [row for row in figures.rows("tasks_by_queue") if row["waits_unknown"]]
    if len(rows) < 1 or len(figures.rows("tasks_by_queue")) == 1:
        return None
    most = busiest(rows, "waits_unknown_share")[:5]
    told = ", ".join(
        f"{label(row['queue'], figures, 'queue')} {words.percent(row['waits_unknown_share'])}" for row in most
    )
    return f"Left out by queue{', the five with most' if len(rows) > 5 else ''}: {told}."


def _unlogged(figures: Figures) -> str:
    lost = figures.only_row("attempts").get("lost") or 0
    told = (
        f"Without {words.count(lost, 'lost lease')}: such an attempt ends when its lease does, whatever its worker did."
        if lost
        else "No lease was lost."
    )
    unlogged = [row for row in figures.rows("attempt_log") if not Logged(row["logged"]).tells_successes]
    if unlogged:
        names = ", ".join(label(row["queue"], figures, "queue") for row in unlogged)
        told += f" No run times of {names}: their attempts that succeeded are not in the log."
    return told
