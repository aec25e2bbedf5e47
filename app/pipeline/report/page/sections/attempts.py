"""How many attempts tasks took, what the failed ones cost, and which leases were lost."""

from app.pipeline.report.figures import Figures, Row, busiest
from app.pipeline.report.outcomes import MOST_ATTEMPTS
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import axis_of, label, note, section
from app.pipeline.report.page.html import Html, markup, tag
from app.pipeline.report.page.marks import Column, columns_plot, nothing, share_of_largest, table
from app.pipeline.report.page.plots import Series, stacked_bars


def attempts(figures: Figures) -> Html:
    """The histogram, and retry cost and lost leases by queue."""
    return section(
        "Attempts, retries and lost leases",
        "attempts",
        _in_words(figures),
        _histogram(figures),
        tag("h3", "What failed attempts cost, by queue"),
        _cost_table(figures),
        _lost_over_time(figures),
    )


def _in_words(figures: Figures) -> str | None:
    rows = figures.rows("attempts_histogram")
    ended = sum(row["done"] + row["dead"] for row in rows)
    at_once = next((row["done"] for row in rows if row["attempts"] == 1), 0)
    if not ended:
        return None
    share = words.percent(at_once / ended)
    return f"{words.number(at_once)} tasks were done at the first attempt: {share} of those that were done or died."


def _histogram(figures: Figures) -> Html:
    rows = {row["attempts"]: row for row in figures.rows("attempts_histogram")}
    if not rows:
        return nothing("No task was done or died in this time.")
    if max(rows) < 2:
        return nothing("No task took more than one attempt.")
    # Those of one attempt are told in words: beside their bar all others would be flat.
    bars = [(_attempts_name(n), _pieces(rows.get(n))) for n in range(2, max(rows) + 1)]
    legend = tag(
        "div",
        tag("span", tag("i", class_="good"), "done"),
        tag("span", tag("i", class_="bad"), "died"),
        class_="legend",
    )
    return markup(
        tag("h3", "Tasks that took more than one attempt, by their number"),
        legend,
        columns_plot(bars, "Tasks by number of attempts"),
    )


def _attempts_name(attempts: int) -> str:
    return f"{attempts}+" if attempts == MOST_ATTEMPTS else str(attempts)


def _pieces(row: Row | None) -> list[tuple[float, str, str]]:
    if row is None:
        return []
    return [(row[figure], colour, f"{words.number(row[figure])} {told}") for figure, colour, told in PIECES]


PIECES = (("done", "good", "done"), ("dead", "bad", "died"))


def _cost_table(figures: Figures) -> Html:
    rows = busiest(figures.rows("attempts_by_queue"), "failed_seconds")
    columns = [
        Column("Queue", lambda row: label(row["queue"], figures, "queue"), is_number=False),
        Column("Attempts logged", lambda row: words.number(row["attempts"])),
        Column("Failed", lambda row: words.number(row["failed"])),
        Column(
            "Time in failed attempts",
            lambda row: words.seconds(row["failed_seconds"]),
            bar=share_of_largest(rows, "failed_seconds"),
            colour="c2",
        ),
        Column("Of all working time", lambda row: words.percent(row["failed_seconds_share"])),
        Column("Lost leases", lambda row: words.number(row["lost"]), bar=share_of_largest(rows, "lost"), colour="c4"),
        Column("Of attempts", lambda row: words.percent(row["lost_share"])),
    ]
    return table(rows, columns, "The attempt log holds nothing of this time.")


def _lost_over_time(figures: Figures) -> Html | None:
    rows = {row["hour"]: row["lost"] for row in figures.rows("attempts_by_hour")}
    if figures.span is None or not any(rows.values()):
        return None
    width = words.width(figures.span.width_seconds)
    series = Series("lost leases", "c4", [rows.get(at, 0) for at in figures.span.starts])
    return markup(
        tag("h3", f"Lost leases in each {width}"),
        stacked_bars(axis_of(figures.span), [series], words.rate, f"Lost leases in each {width}"),
        note(
            "A lease is lost when its worker neither settles nor extends it in time: it died, hung, or needed longer."
        ),
    )
