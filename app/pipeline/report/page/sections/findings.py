"""What stands out, in a sentence each, by plain rules."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.pipeline.report.coverage import Logged
from app.pipeline.report.figures import Figures, Row, busiest
from app.pipeline.report.labels import OTHERS
from app.pipeline.report.page import words
from app.pipeline.report.page.html import Html, markup, tag

# From where on a reader would want to hear of it.
DEAD_SHARE = 0.01
RETRY_COST = 0.05
LOST_SHARE = 0.005
REASON_SHARE = 0.25
TENANT_SHARE = 0.5
# Of fewer, a share is chance.
FEWEST = 100
MOST = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and how bad it is."""

    colour: str
    sentence: Html


def find(figures: Figures) -> list[Finding]:
    """At most a few findings, those that need somebody first."""
    rules = (_dying_queue, _retry_cost, _lost_leases, _main_reason, _overdue, _slow_hour, _gaps)
    return [finding for rule in rules for finding in rule(figures)][:MOST]


def findings(figures: Figures) -> Html | None:
    if figures.span is None:
        return None
    found = find(figures)
    items = [tag("li", finding.sentence, class_=finding.colour) for finding in found]
    told = (
        tag("ul", items, class_="stands") if items else tag("p", "Nothing stands out: no rule of this page found any.")
    )
    return tag("section", tag("h2", "What stands out"), tag("p", class_="sub"), told, id="stands-out")


def _dying_queue(figures: Figures) -> Iterator[Finding]:
    decided = [row for row in figures.rows("tasks_by_queue") if row["done"] + row["dead"] >= FEWEST]
    worst = max(decided, key=lambda row: 1 - row["success_rate"], default=None)
    if worst is not None and 1 - worst["success_rate"] >= DEAD_SHARE:
        share = words.percent(1 - worst["success_rate"])
        yield Finding("bad", markup("In ", _name(worst), f", {share} of tasks died: {words.number(worst['dead'])}."))


def _retry_cost(figures: Figures) -> Iterator[Finding]:
    rows = [row for row in figures.rows("attempts_by_queue") if row["attempts"] >= FEWEST]
    for row in busiest(rows, "failed_seconds_share")[:1]:
        if (row["failed_seconds_share"] or 0) >= RETRY_COST:
            told = f" spends {words.percent(row['failed_seconds_share'])} of its working time in attempts that fail."
            yield Finding("warn", markup(_name(row), told))


def _lost_leases(figures: Figures) -> Iterator[Finding]:
    rows = [row for row in figures.rows("attempts_by_queue") if row["attempts"] >= FEWEST]
    for row in busiest(rows, "lost_share")[:1]:
        if (row["lost_share"] or 0) >= LOST_SHARE:
            told = f" lost {words.count(row['lost'], 'lease')}, {words.percent(row['lost_share'])} of its attempts: "
            advice = "workers died, or ran longer than their lease without extending it."
            yield Finding("warn", markup(_name(row), told, advice))


def _main_reason(figures: Figures) -> Iterator[Finding]:
    failures = figures.only_row("failures").get("failures", 0)
    first = figures.only_row("failure_reasons")
    if failures >= FEWEST and first["failures"] / failures >= REASON_SHARE:
        share = words.percent(first["failures"] / failures)
        reason = tag("code", words.short(first["reason"], 120))
        yield Finding("warn", markup(f"One reason makes up {share} of all failures: ", reason, "."))


def _overdue(figures: Figures) -> Iterator[Finding]:
    """A queue in which something waits far longer now than its tasks usually do."""
    usual = {row["queue"]: row["wait_p99_seconds"] for row in figures.rows("tasks_by_queue")}
    for row in busiest(figures.rows("backlog_by_queue"), "oldest_ready_seconds")[:1]:
        waited, known = row["oldest_ready_seconds"] or 0, usual.get(row["queue"])
        if known and waited > max(60.0, 2 * known):
            told = f" has {words.count(row['ready'], 'task')} ready now, the oldest for {words.seconds(waited)};"
            yield Finding("bad", markup(_name(row), told, f" usually 99 % wait less than {words.seconds(known)}."))


def _slow_hour(figures: Figures) -> Iterator[Finding]:
    total, span = figures.only_row("tasks"), figures.span
    rows = [row for row in figures.rows("tasks_by_hour") if row["waits_known"] >= FEWEST]
    for row in busiest(rows, "wait_p95_seconds")[:1]:
        if span and len(rows) > 1 and row["wait_p95_seconds"] > max(1.0, 5 * total["wait_p95_seconds"]):
            when = words.bucket(row["hour"], span.width_seconds)
            told = f"Waits were longest in {when}: 95 % within {words.seconds(row['wait_p95_seconds'])}, against "
            yield Finding("warn", markup(told, f"{words.seconds(total['wait_p95_seconds'])} over the whole time."))


def _gaps(figures: Figures) -> Iterator[Finding]:
    gaps = [row for row in figures.rows("attempt_log") if Logged(row["logged"]) not in (Logged.ALL, Logged.NOTHING)]
    if gaps:
        told = (
            f"The attempt log lacks attempts of {words.count(len(gaps), 'queue')}, so figures about them are missing: "
        )
        yield Finding("mute", markup(told, tag("a", "which ones", href="#meant"), "."))


def _name(row: Row) -> Html:
    queue = row["queue"]
    return tag("b", "the other queues" if queue == OTHERS else queue)
