"""The advice: what to set for each queue in one table, and what it rests on, queue by queue."""

from collections.abc import Iterator, Sequence

from app.pipeline.advice.findings import Advice, Confidence, QueueAdvice, QueueKey, Rescue, WaitAt, WorkersAdvice
from app.pipeline.report.figures import Figures
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import folded, note, section
from app.pipeline.report.page.html import Child, Html, markup, tag
from app.pipeline.report.page.marks import columns_plot, nothing

MOST_QUEUES = 15
CONFIDENCES = {Confidence.GOOD: ("well founded", "good"), Confidence.LOW: ("few data", "warn")}


def advice(figures: Figures, advised: Sequence[QueueAdvice]) -> Html | None:
    """The busiest queues' advice; the rest is in the tables."""
    if not advised:
        return None
    shown = _busiest_first(figures, advised)[:MOST_QUEUES]
    several = len({one.key.tenant_id for one in advised}) > 1
    rest = len(advised) - len(shown)
    return section(
        "Advice",
        "advice",
        f"From the same records. Wanted: {_target(shown[0].workers)}. A change is told as “now → better”.",
        _at_a_glance(shown, several=several),
        folded("What this rests on, queue by queue", markup(_in_full(one, several=several) for one in shown)),
        note(f"The advice on {words.count(rest, 'more queue')} is in tables/advice.csv.") if rest else None,
    )


def _busiest_first(figures: Figures, advised: Sequence[QueueAdvice]) -> list[QueueAdvice]:
    order = {QueueKey(row["tenant"], row["queue"]): n for n, row in enumerate(figures.rows("busiest_queues"))}
    return sorted(advised, key=lambda one: (order.get(one.key, len(order)), one.key))


def _target(workers: WorkersAdvice) -> str:
    share, wait = words.percent(workers.target.share), words.seconds(workers.target.wait_seconds)
    return f"{share} of tasks leased within {wait} of being due"


def _name(one: QueueAdvice, *, several: bool) -> str:
    return f"{one.key.queue} · {one.key.tenant_id}" if several else one.key.queue


def _at_a_glance(shown: Sequence[QueueAdvice], *, several: bool) -> Html:
    titles = ("Queue", "Lease", "Heartbeat", "Attempts", "Backoff from", "Workers", "Backlog gone in")
    if not any(_has_advice(one) for one in shown):
        return nothing("There is too little data for any advice; what is lacking is told below.")
    head = tag("tr", [tag("th", title, class_="n" if place else None) for place, title in enumerate(titles)])
    body = [
        tag("tr", tag("td", _name(one, several=several)), [tag("td", cell, class_="n") for cell in _settings(one)])
        for one in shown
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll")


def _has_advice(one: QueueAdvice) -> bool:
    every = (one.lease, one.attempts, one.backoff, one.workers, one.drain)
    return any(part.confidence is not Confidence.NONE for part in every)


def _settings(one: QueueAdvice) -> Iterator[Child]:
    policy = one.policy
    yield _change(_setting(policy.lease_seconds), _told(one.lease.lease_seconds))
    yield _told(one.lease.heartbeat_seconds) or words.MISSING
    limit = str(policy.max_attempts) if policy.max_attempts else "unlimited"
    yield _change(limit, None if one.attempts.max_attempts is None else str(one.attempts.max_attempts))
    yield _change(_setting(policy.backoff.base_seconds), _told(one.backoff.base_seconds))
    yield words.number(one.workers.workers)
    yield _drained(one)


def _told(seconds: float | None) -> str | None:
    return None if seconds is None else _setting(seconds)


def _setting(seconds: float) -> str:
    """As it is set: in seconds, whatever their number."""
    return f"{seconds:,.4g} s"


def _change(now: str, better: str | None) -> Html:
    """What is set, and in bold what would be better, if that is something else."""
    if better is None or better == now:
        return tag("span", now, class_="same" if better is None else None)
    return tag("span", f"{now} → ", tag("b", better))


def _drained(one: QueueAdvice) -> str:
    if one.drain.never:
        return "never"
    if one.drain.backlog == 0:
        return "empty"
    return words.seconds(one.drain.likely_seconds)


def _in_full(one: QueueAdvice, *, several: bool) -> Html:
    assumed = None if one.policy_is_known else tag("small", "settings not known, defaults assumed")
    parts = [
        ("Lease", _piece(one.lease)),
        ("Attempts", _piece(one.attempts, _rescues(one.attempts.rescues))),
        ("Backoff", _piece(one.backoff)),
        ("Workers", _piece(one.workers, _curve(one.workers))),
        ("Backlog", _piece(one.drain)),
    ]
    pieces = [(tag("dt", title), tag("dd", told)) for title, told in parts]
    return tag(
        "div", tag("h3", _name(one, several=several), assumed), tag("dl", pieces, class_="advice"), class_="queue"
    )


def _piece(part: Advice, drawn: Html | None = None) -> Html:
    badge = None
    if part.confidence in CONFIDENCES:
        text, colour = CONFIDENCES[part.confidence]
        badge = tag("span", text, class_=f"badge {colour}")
    caveats = [tag("small", caveat) for caveat in part.caveats]
    return markup(tag("p", part.sentence, " ", badge), drawn, caveats)


def _rescues(rescues: Sequence[Rescue]) -> Html | None:
    """What share of the tasks that reached an attempt it rescued."""
    if len(rescues) < 2:
        return None
    bars = [
        (f"attempt {one.attempt}", [(one.share, "good", f"{one.rescued:,} of {one.reached:,} tasks")])
        for one in rescues
    ]
    tops = [words.percent(one.share) for one in rescues]
    return columns_plot(bars, "Share of tasks that each attempt rescued", tops)


def _curve(workers: WorkersAdvice) -> Html | None:
    """The wait in the worst hour by number of workers: the recommended one in its own colour."""
    if len(workers.curve) < 2 or not any(at.worst_hour_seconds for at in workers.curve):
        return None
    bars = [(f"{at.workers:,}", [(at.worst_hour_seconds, _colour(at, workers), "")]) for at in workers.curve]
    tops = [words.seconds(at.worst_hour_seconds) for at in workers.curve]
    return columns_plot(bars, "Wait in the worst hour by number of workers", tops)


def _colour(at: WaitAt, workers: WorkersAdvice) -> str:
    return "c1" if at.workers == workers.workers else "cx"
