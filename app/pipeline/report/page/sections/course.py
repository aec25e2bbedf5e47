"""Throughput and outcomes over time and by name, and the rhythm of the week."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from app.pipeline.report.buckets import HOUR, Span
from app.pipeline.report.figures import Figures, Row, busiest
from app.pipeline.report.labels import OTHERS
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import axis_of, folded, label, section
from app.pipeline.report.page.html import Child, Html, markup, tag
from app.pipeline.report.page.marks import Column, heat_map, nothing, parts, share_of_largest, table
from app.pipeline.report.page.plots import Series, stacked_bars

# So many queues have a colour of their own.
COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6")
OUTCOMES = (("done", "good"), ("dead", "bad"), ("expired", "warn"), ("cancelled", "mute"))
# A week's rhythm is not seen in less.
SHORTEST_RHYTHM = timedelta(days=3)


def throughput(figures: Figures) -> Html:
    """Finished tasks over time by queue, and by queue, type and tenant in tables."""
    if figures.span is None or not figures.rows("tasks"):
        return section("Throughput", "throughput", None, nothing("No task was finished in this time."))
    width = words.width(figures.span.width_seconds)
    return section(
        "Throughput",
        "throughput",
        f"Finished tasks in each {width}, by queue: done, dead, expired and cancelled alike.",
        stacked_bars(axis_of(figures.span), _by_queue(figures), words.rate, f"Finished tasks in each {width} by queue"),
        by_names(figures),
    )


def by_names(figures: Figures) -> Html:
    """What became of tasks by queue, and folded by type and tenant."""
    return markup(
        tag("h3", "By queue"),
        _outcome_table(figures, "queue"),
        folded("By type", _outcome_table(figures, "type")),
        folded("By tenant", _outcome_table(figures, "tenant")),
    )


def _by_queue(figures: Figures) -> list[Series]:
    assert figures.span is not None
    values: dict[str, dict[datetime, float]] = defaultdict(lambda: defaultdict(float))
    own = [row["queue"] for row in busiest(figures.rows("tasks_by_queue"), "tasks") if row["queue"] != OTHERS]
    own = own[: len(COLOURS)]
    for row in figures.rows("throughput_by_queue_and_hour"):
        values[row["queue"] if row["queue"] in own else OTHERS][row["hour"]] += row["tasks"]
    names = [(name, colour) for name, colour in zip(own, COLOURS, strict=False) if name in values]
    names += [(OTHERS, "cx")] if OTHERS in values else []
    return [
        Series(
            "other queues" if name == OTHERS else name, colour, [values[name].get(at, 0) for at in figures.span.starts]
        )
        for name, colour in names
    ]


def outcomes(figures: Figures) -> Html:
    """Deaths and expiries over time: what went wrong would be lost in a plot of everything."""
    title, anchor = "Success and failure", "outcomes"
    if figures.span is None or not figures.rows("tasks"):
        return section(title, anchor, None, nothing("No task was finished in this time."))
    rows = {row["hour"]: row for row in figures.rows("tasks_by_hour")}
    series = [
        Series(figure, colour, [rows[at][figure] if at in rows else 0 for at in figures.span.starts])
        for figure, colour in OUTCOMES[1:]
    ]
    shown = [one for one in series if any(one.values)]
    width = words.width(figures.span.width_seconds)
    if not shown:
        return section(title, anchor, None, nothing("Every task was done: none died, expired or was cancelled."))
    plot = stacked_bars(axis_of(figures.span), shown, words.rate, f"Tasks that were not done in each {width}")
    return section(title, anchor, f"Tasks that ended without being done, in each {width}.", plot)


def rhythm(figures: Figures) -> Html | None:
    """When in the week tasks finish, where the time is long enough to show it."""
    span = figures.span
    if span is None or span.duration < SHORTEST_RHYTHM or not figures.rows("tasks"):
        return None
    hours = _hours_seen(span)
    values = {
        (row["weekday"], row["hour_of_day"]): row["tasks"] / hours[row["weekday"], row["hour_of_day"]]
        for row in figures.rows("rhythm")
    }
    busy = max(values, key=lambda place: values[place])
    day = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")[busy[0] - 1]
    return section(
        "Rhythm of the week",
        "rhythm",
        f"Finished tasks by weekday and hour of the day (UTC), on average. Busiest: {day} at {busy[1]:02}:00,"
        f" {words.rate(values[busy])} tasks in the hour.",
        heat_map(values, lambda value: f"{words.rate(value)} tasks on average"),
    )


def _hours_seen(span: Span) -> dict[tuple[int, int], int]:
    """How often each hour of the week is in the time, begun ones included."""
    seen: dict[tuple[int, int], int] = defaultdict(int)
    at, last = span.first.replace(minute=0, second=0, microsecond=0), span.last
    whole, rest = divmod(int((last - at).total_seconds()) // HOUR + 1, 7 * 24)
    for hour in range(7 * 24):
        moment = at + timedelta(hours=hour)
        seen[moment.isoweekday(), moment.hour] = whole + (hour < rest)
    return seen


def _outcome_table(figures: Figures, dimension: str) -> Html:
    rows = busiest(figures.rows(f"tasks_by_{dimension}"), "tasks")
    columns = [
        Column(dimension.capitalize(), lambda row: label(row[dimension], figures, dimension), is_number=False),
        Column("Tasks", lambda row: words.number(row["tasks"]), bar=share_of_largest(rows, "tasks")),
        Column("Outcome", lambda row: parts(row, OUTCOMES, row["tasks"]), is_number=False),
        Column("Succeeded", lambda row: words.percent(row["success_rate"])),
        *(Column(name.capitalize(), _count_of(name)) for name in ("dead", "expired", "cancelled") if _any(rows, name)),
        Column("Retried", lambda row: words.percent(row["retried"] / row["tasks"])),
    ]
    return table(rows, columns, "No task was finished in this time.")


def _count_of(figure: str) -> Callable[[Row], Child]:
    return lambda row: words.number(row[figure])


def _any(rows: Sequence[Row], figure: str) -> bool:
    return any(row[figure] for row in rows)
