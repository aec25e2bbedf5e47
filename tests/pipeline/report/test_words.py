"""Numbers, times and names as people read them."""

from datetime import UTC, datetime, timedelta

import pytest

from app.pipeline.report.page import words
from app.pipeline.report.page.html import Html, markup, tag
from app.pipeline.report.page.scales import linear, powers, time_ticks

MONDAY = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "–"), (0, "0 s"), (1e-9, "< 1 µs"), (0.000012, "12 µs"), (0.0042, "4.2 ms"), (0.25, "250 ms"),
        (0.9996, "1 s"), (1.234, "1.2 s"), (90, "90 s"), (119.9, "120 s"), (60, "1 min"), (180, "3 min"),
        (3600, "1 h"), (5400, "90 min"), (9000, "2.5 h"), (86400, "1 d"), (345_600, "4 d"), (1e9, "11,574 d"),
    ],
)  # fmt: skip
def test_seconds(value: float | None, told: str) -> None:
    assert words.seconds(value) == told


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (None, "–"), (0, "0 %"), (1, "100 %"), (0.00001, "< 0.01 %"), (0.999999, "> 99.99 %"), (0.0005, "0.05 %"),
        (0.012, "1.2 %"), (0.95, "95 %"), (0.05, "5 %"), (0.123, "12 %"), (0.5, "50 %"), (0.98765, "98.8 %"),
        (0.9995, "99.95 %"),
    ],
)  # fmt: skip
def test_percent(share: float | None, told: str) -> None:
    assert words.percent(share) == told


def test_numbers_and_sizes() -> None:
    assert (words.number(1234567), words.number(None)) == ("1,234,567", "–")
    assert (words.count(1, "task"), words.count(1200, "task")) == ("1 task", "1,200 tasks")
    assert (words.size(512), words.size(1536), words.size(3 * 1024**4)) == ("512 B", "1.5 KiB", "3 TiB")
    assert [words.rate(value) for value in (0, 0.034, 1.25, 9.7, 1234.5)] == ["0", "0.034", "1.2", "10", "1,234"]


def test_times() -> None:
    assert words.instant(MONDAY) == "2 Mar 2026 09:05 UTC"
    assert words.bucket(MONDAY.replace(minute=0), 3600) == "Mon 2 Mar 09:00–10:00"
    assert words.bucket(MONDAY, 86400) == "Mon 2 Mar"
    assert words.bucket(MONDAY, 7 * 86400) == "2 Mar – 8 Mar"
    assert [words.width(seconds) for seconds in (3600, 7200, 86400, 604800)] == ["hour", "2 hours", "day", "7 days"]
    assert words.duration(timedelta(days=14)) == "14 days"
    assert words.duration(timedelta(hours=30)) == "30 hours"
    assert words.duration(timedelta(0)) == "a moment"


def test_a_text_that_is_cut_is_told_to_be() -> None:
    assert (words.short("abcdef", 6), words.short("abcdefg", 6)) == ("abcdef", "abcde…")
    assert (words.name(""), words.name("x")) == ("(no type)", "x")


def test_text_becomes_markup_only_escaped() -> None:
    foreign = "<script>alert('x')</script>"
    assert "<script>" not in tag("p", foreign, title=foreign)
    assert tag("p", tag("b", "a & b"), None, 3, [foreign[:8]]) == "<p><b>a &amp; b</b>3&lt;script&gt;</p>"
    assert tag("td", class_="n", aria_label='"', id=None) == '<td class="n" aria-label="&quot;"></td>'
    assert isinstance(markup("a", Html("<br>")), Html)


def test_a_linear_scale_ends_at_a_round_number_that_nothing_exceeds() -> None:
    for highest in (0.03, 1, 7, 799, 800, 801, 123_456):
        scale = linear(highest)
        assert highest <= scale.high <= 2.5 * highest
        assert scale.ticks[-1] == scale.high
        assert 2 <= len(scale.ticks) <= 6
    assert linear(800).high == 800
    assert linear(0).place(0) == 0


@pytest.mark.parametrize("values", [[], [0.0], [0.004], [0.004, 5000.0], [1e-7, 1e12]])
def test_a_scale_of_powers_holds_every_duration(values: list[float]) -> None:
    scale = powers(values)
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)
    assert len(scale.ticks) <= 6


@pytest.mark.parametrize("length", [timedelta(hours=1), timedelta(days=2), timedelta(days=30), timedelta(days=9000)])
def test_time_ticks_are_few_round_and_within(length: timedelta) -> None:
    ticks = time_ticks(MONDAY, MONDAY + length)
    assert len(ticks) <= 9
    assert all(MONDAY <= tick <= MONDAY + length and tick.minute == 0 for tick in ticks)
