"""Bars, ranges and heat: what stands in a row or a cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.pipeline.report.figures import Row
from app.pipeline.report.page import words
from app.pipeline.report.page.html import Child, Html, tag
from app.pipeline.report.page.scales import powers

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, what a cell shows, and how long the bar behind it is, from 0 to 1."""

    title: str
    cell: Callable[[Row], Child]
    is_number: bool = True
    bar: Callable[[Row], float | None] | None = None
    colour: str = "c1"


def table(rows: Sequence[Row], columns: Sequence[Column], empty: str) -> Html:
    """A table that scrolls by itself where it is too wide, or a plain sentence if it has no rows."""
    if not rows:
        return nothing(empty)
    head = tag("tr", [tag("th", column.title, class_="n" if column.is_number else None) for column in columns])
    body = [tag("tr", [_cell(row, column) for column in columns]) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll")


def nothing(sentence: str) -> Html:
    """What is said where there is nothing to show."""
    return tag("p", sentence, class_="nothing")


def share_of_largest(rows: Sequence[Row], figure: str) -> Callable[[Row], float]:
    """How long a bar is next to the longest of its column."""
    largest = max((row[figure] or 0 for row in rows), default=0) or 1
    return lambda row: (row[figure] or 0) / largest


def parts(row: Row, shown: Sequence[tuple[str, str]], whole: float) -> Html:
    """One bar in pieces, each a figure of the row in its colour."""
    pieces = [
        tag("i", class_=colour, style=f"width:{100 * row[figure] / whole:.3f}%", title=f"{figure}: {row[figure]:,}")
        for figure, colour in shown
        if row[figure]
    ]
    return tag("span", pieces, class_="parts")


def ranges(rows: Sequence[Row], prefix: str, counted: str, name: Callable[[Row], str], empty: str) -> Html:
    """For each row a line from p50 to p99 on a common scale of durations."""
    known = [row for row in rows if row[f"{prefix}_p50_seconds"] is not None]
    if not known:
        return nothing(empty)
    figures = [f"{prefix}_{place}_seconds" for place in ("p50", "p95", "p99")]
    scale = powers([row[figure] for row in known for figure in figures])
    ticks = [tag("span", words.seconds(tick), style=f"left:{100 * scale.place(tick):.2f}%") for tick in scale.ticks]
    grid = [tag("b", style=f"left:{100 * scale.place(tick):.2f}%") for tick in scale.ticks]
    titles = [tag("span", title, class_="n") for title in ("p50", "p95", "p99", counted)]
    head = tag("div", tag("span"), tag("span", ticks, class_="ticks"), titles, class_="head")
    body = [
        tag(
            "div",
            tag("span", name(row), class_="name"),
            tag("span", grid, _range([scale.place(row[figure]) for figure in figures]), class_="track"),
            [tag("span", words.seconds(row[figure]), class_="n") for figure in figures],
            tag("span", words.number(row[counted]), class_="n"),
        )
        for row in known
    ]
    return tag("div", head, body, class_="ranges")


def _range(places: Sequence[float]) -> Html:
    low, middle, high = (100 * place for place in places)
    return Html(
        tag("i", class_="reach", style=f"left:{low:.2f}%;width:{high - low:.2f}%")
        + tag("i", class_="dot p50", style=f"left:{low:.2f}%")
        + tag("i", class_="dot p95", style=f"left:{middle:.2f}%")
        + tag("i", class_="dot p99", style=f"left:{high:.2f}%")
    )


def heat_map(values: dict[tuple[int, int], float], hint: Callable[[float], str]) -> Html:
    """Seven weekdays by 24 hours; the warmer, the more."""
    hottest = max(values.values(), default=0.0) or 1.0
    hours = [tag("span"), *(tag("span", f"{hour:02}" if hour % 3 == 0 else "") for hour in range(24))]
    cells: list[Html] = []
    for weekday, day in enumerate(WEEKDAYS, start=1):
        cells.append(tag("span", day, class_="day"))
        for hour in range(24):
            value = values.get((weekday, hour), 0.0)
            title = f"{day} {hour:02}:00–{(hour + 1) % 24:02}:00\n{hint(value)}"
            cells.append(tag("i", style=f"--v:{100 * value / hottest:.0f}%", title=title))
    return tag("div", hours, cells, class_="heat", role="img", aria_label="Tasks by weekday and hour of the day")


def columns_plot(
    bars: Sequence[tuple[str, Sequence[tuple[float, str, str]]]], label: str, tops: Sequence[str] | None = None
) -> Html:
    """Upright bars in pieces (value, colour, hint), each with its name below; above its total, or `tops`."""
    totals = [sum(value for value, _, _ in pieces) for _, pieces in bars]
    highest = max(totals, default=0.0) or 1.0
    told = tops or [words.number(total) for total in totals]
    drawn = [
        tag(
            "div",
            tag("span", top, class_="n"),
            tag("div", [_piece(piece, highest) for piece in pieces if piece[0]], class_="col"),
            tag("span", name, class_="under"),
        )
        for (name, pieces), top in zip(bars, told, strict=True)
    ]
    return tag("div", drawn, class_="columns", role="img", aria_label=label)


def _piece(piece: tuple[float, str, str], highest: float) -> Html:
    value, colour, hint = piece
    return tag("i", class_=colour, style=f"height:{100 * value / highest:.2f}%", title=hint or None)


def _cell(row: Row, column: Column) -> Html:
    length = column.bar(row) if column.bar else None
    if length is None:
        return tag("td", column.cell(row), class_="n" if column.is_number else None)
    style = f"--w:{100 * min(1.0, length):.2f}%"
    bar = tag("div", tag("span", column.cell(row)), style=style)
    return tag("td", bar, class_=f"bar n {column.colour}")
