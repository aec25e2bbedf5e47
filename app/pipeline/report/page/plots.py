"""Plots over time, drawn as SVG that stretches to the width it has, with words beside it that do not stretch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.pipeline.report.page import words
from app.pipeline.report.page.html import Html, markup, tag
from app.pipeline.report.page.scales import Scale, linear, powers, time_ticks

WIDE, HIGH = 1000, 100
# With few bars they stand apart; many would be lost in their gaps.
FEW_BARS = 80
GAP = 0.18
Tell = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Axis:
    """Buckets of time, one after the other."""

    starts: Sequence[datetime]
    width_seconds: int

    @property
    def end(self) -> datetime:
        return self.starts[-1] + timedelta(seconds=self.width_seconds)

    def place(self, at: datetime) -> float:
        """Where an instant is, between 0 and 1."""
        return (at - self.starts[0]) / (self.end - self.starts[0])


@dataclass(frozen=True, slots=True)
class Series:
    """A value for each bucket, or None where there is none; `colour` is a class of the style."""

    name: str
    colour: str
    values: Sequence[float | None]


def stacked_bars(axis: Axis, series: Sequence[Series], tell: Tell, label: str) -> Html:
    """How much of each there was in each bucket, one on the other."""
    tops = [0.0] * len(axis.starts)
    for one in series:
        tops = [top + (value or 0) for top, value in zip(tops, one.values, strict=True)]
    scale = linear(max(tops))
    below = [0.0] * len(tops)
    drawn = []
    for one in series:
        above = [low + (value or 0) for low, value in zip(below, one.values, strict=True)]
        drawn.append(tag("path", d=_bars(axis, scale, below, above), class_=f"fill {one.colour}"))
        below = above
    return _plot(axis, scale, series, drawn, tell=tell, label=label)


def lines(axis: Axis, series: Sequence[Series], tell: Tell, label: str, *, highest: float | None = None) -> Html:
    """Values from 0 on, as lines that break where there is no value."""
    scale = linear(highest or max(_present(series), default=0.0))
    return _plot(axis, scale, series, [_line(axis, scale, one) for one in series], tell=tell, label=label)


def duration_lines(axis: Axis, series: Sequence[Series], label: str) -> Html:
    """Durations by powers: a millisecond and an hour are both seen."""
    scale = powers(_present(series))
    return _plot(axis, scale, series, [_line(axis, scale, one) for one in series], tell=words.seconds, label=label)


def sparkline(values: Sequence[float | None], colour: str) -> Html:
    """The shape of something over time, without a word."""
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    step = WIDE / max(1, len(values))
    points = "".join(f"V{HIGH - HIGH * (value or 0) / top:.1f}h{step:.2f}" for value in values)
    shape = tag("path", d=f"M0 {HIGH}{points}V{HIGH}z", class_=f"fill {colour}")
    return _svg(shape, class_="spark", aria_hidden="true")


def _present(series: Iterable[Series]) -> list[float]:
    return [value for one in series for value in one.values if value is not None]


def _bars(axis: Axis, scale: Scale, below: Sequence[float], above: Sequence[float]) -> str:
    step = WIDE / len(axis.starts)
    wide = step * (1 - GAP) if len(axis.starts) <= FEW_BARS else step
    left = (step - wide) / 2
    return "".join(
        f"M{step * i + left:.2f} {_down(scale, low):.2f}V{_down(scale, high):.2f}h{wide:.2f}V{_down(scale, low):.2f}z"
        for i, (low, high) in enumerate(zip(below, above, strict=True))
        if high > low
    )


def _line(axis: Axis, scale: Scale, series: Series) -> Html:
    step = WIDE / len(axis.starts)
    parts, pen_is_down = [], False
    for i, value in enumerate(series.values):
        if value is not None:
            place = f"{step * (i + 0.5):.1f} {_down(scale, value):.2f}"
            # A point alone is drawn too: its line has round ends.
            parts.append(f"L{place}" if pen_is_down else f"M{place}l0 0")
        pen_is_down = value is not None
    return tag("path", d="".join(parts), class_=f"line {series.colour}")


def _down(scale: Scale, value: float) -> float:
    return HIGH * (1 - scale.place(value))


def _plot(axis: Axis, scale: Scale, series: Sequence[Series], drawn: Sequence[Html], *, tell: Tell, label: str) -> Html:
    grid = "".join(f"M0 {_down(scale, tick):.2f}H{WIDE}" for tick in scale.ticks)
    svg = _svg(tag("path", d=grid, class_="grid"), *drawn, _hits(axis, series, tell), role="img", aria_label=label)
    ups = [tag("span", tell(tick), style=f"bottom:{100 * scale.place(tick):.2f}%") for tick in scale.ticks]
    legend = [tag("span", tag("i", class_=one.colour), one.name) for one in series] if len(series) > 1 else []
    return tag(
        "figure",
        tag("div", legend, class_="legend") if legend else None,
        tag("div", svg, tag("div", ups, class_="ys", aria_hidden="true"), class_="area"),
        tag("div", _time_labels(axis), class_="xs", aria_hidden="true"),
        class_="plot",
    )


def _svg(*children: Html, **attributes: str) -> Html:
    return tag(
        "svg", *children, viewBox=f"0 0 {WIDE} {HIGH}", preserveAspectRatio="none",
        **attributes,
    )  # fmt: skip


def _hits(axis: Axis, series: Sequence[Series], tell: Tell) -> Html:
    """What the pointer finds over each bucket."""
    step = WIDE / len(axis.starts)
    return tag(
        "g",
        [
            tag(
                "rect",
                tag("title", _hint(axis, series, tell, i)),
                x=f"{step * i:.2f}",
                width=f"{step:.2f}",
                height=HIGH,
            )
            for i in range(len(axis.starts))
            if any(one.values[i] for one in series)
        ],
        class_="hits",
    )


def _hint(axis: Axis, series: Sequence[Series], tell: Tell, place: int) -> str:
    told = [
        f"{one.name}: {tell(value)}" for one in reversed(series) if (value := one.values[place]) is not None and value
    ]
    return "\n".join([words.bucket(axis.starts[place], axis.width_seconds), *told])


def _time_labels(axis: Axis) -> Html:
    ticks = time_ticks(axis.starts[0], axis.end)
    by_day = all(tick.hour == 0 for tick in ticks)
    return markup(
        tag(
            "span",
            f"{tick.day} {tick:%b}" if by_day or tick.hour == 0 else f"{tick:%H:%M}",
            style=f"left:{100 * axis.place(tick):.2f}%",
            # On a narrow screen every second one goes.
            class_="odd" if place % 2 else None,
        )
        for place, tick in enumerate(ticks)
    )
