"""What the sections are built from."""

from app.pipeline.report.buckets import Span
from app.pipeline.report.figures import Figures
from app.pipeline.report.labels import OTHERS
from app.pipeline.report.page import words
from app.pipeline.report.page.html import Child, Html, tag
from app.pipeline.report.page.plots import Axis


def section(title: str, anchor: str, sub: str | None, *content: Child) -> Html:
    """A part of the page with its title, and a line that says what is seen."""
    return tag("section", tag("h2", title), tag("p", sub, class_="sub") if sub else None, *content, id=anchor)


def folded(title: str, content: Html) -> Html:
    """What only some readers want: there, but closed."""
    return tag("details", tag("summary", title), tag("div", content))


def note(*sentences: Child) -> Html:
    """Small print."""
    return tag("p", *sentences, class_="note")


def label(name: str, figures: Figures, dimension: str) -> str:
    """A name as it is shown; the group of those that are cut tells how many they are."""
    if name == OTHERS:
        return f"{words.count(figures.labels[dimension].cut, 'other')}"
    return words.name(name)


def axis_of(span: Span) -> Axis:
    """The buckets of the time that the figures are about."""
    return Axis(span.starts, span.width_seconds)
