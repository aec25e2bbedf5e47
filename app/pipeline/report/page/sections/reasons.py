"""Why things failed."""

from app.pipeline.report.figures import Figures, Row
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import note, section
from app.pipeline.report.page.html import Html, tag
from app.pipeline.report.page.marks import nothing

LONGEST = 240


def reasons(figures: Figures) -> Html:
    """The most frequent reasons, longest bar first."""
    title, anchor, rows = "Why attempts failed", "reasons", figures.rows("failure_reasons")
    if not rows:
        return section(title, anchor, None, nothing("No attempt failed in this time, or none was logged."))
    failures = figures.only_row("failures")["failures"]
    rest = failures - sum(row["failures"] for row in rows)
    return section(
        title,
        anchor,
        f"{words.count(failures, 'failure')}, grouped by what they say without numbers, ids and quoted text.",
        tag("ol", [_reason(row, failures, rows[0]["failures"]) for row in rows], class_="reasons"),
        note(f"{words.count(rest, 'more failure')} for other reasons." if rest else "These are all."),
    )


def _reason(row: Row, failures: int, most: int) -> Html:
    length = tag("i", style=f"width:{100 * row['failures'] / most:.2f}%")
    share = words.percent(row["failures"] / failures)
    return tag(
        "li",
        tag(
            "div",
            tag("code", words.short(row["reason"], LONGEST)),
            tag("b", f"{words.number(row['failures'])} · {share}"),
            class_="top",
        ),
        tag("div", length, class_="length"),
        tag("small", _where(row), _example(row)),
    )


def _where(row: Row) -> str:
    others = row["about_queues"] - 1
    where = f"in {row['most_in_queue']}" if others < 1 else f"mostly in {row['most_in_queue']}"
    when = f"{words.moment(row['first_at'])} – {words.moment(row['last_at'])}"
    return f"{where} · about {words.count(row['about_tasks'], 'task')} · {when}"


def _example(row: Row) -> str | None:
    example = row["example"]
    return None if example is None or example == row["reason"] else f" · for example: {words.short(example, LONGEST)}"
