"""What the data cannot tell, and how the figures are meant."""

from app.pipeline.report.coverage import Logged
from app.pipeline.report.figures import Figures, Row
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import label, section
from app.pipeline.report.page.html import Html, tag
from app.pipeline.report.page.marks import Column, table

FROM_SUCCESSES = "run time, share of lost leases, share of time in failed attempts, seconds of work"
MISSING = {
    Logged.ALL: "nothing",
    Logged.NOTHING: "nothing",
    Logged.PART: "part of the attempts: what is shown is about those that are logged",
    Logged.FAILURES: FROM_SUCCESSES,
    Logged.NO_SUCCESS: f"{FROM_SUCCESSES}, lost leases",
    Logged.OFF: f"{FROM_SUCCESSES}, lost leases, retry cost; failure reasons are those of dead letters",
}
TOLD = {
    Logged.ALL: "all attempts",
    Logged.NOTHING: "nothing to log",
    Logged.PART: "some attempts",
    Logged.FAILURES: "failures only",
    Logged.NO_SUCCESS: "no attempt",
    Logged.OFF: "off",
}


def missing(figures: Figures) -> Html:
    """Which figures are missing for which queue, which names were cut, and what the words mean."""
    rows = figures.rows("attempt_log")
    gaps = [row for row in rows if Logged(row["logged"]) not in (Logged.ALL, Logged.NOTHING)]
    return section(
        "What is missing, and what is meant", "meant", _in_words(rows, gaps), _gaps(figures, gaps), _meant(figures)
    )


def _in_words(rows: list[Row], gaps: list[Row]) -> str:
    if not rows:
        return "There is no data of this time."
    if not gaps:
        return "Nothing is missing: the attempt log holds every attempt of every queue."
    return (
        f"The attempt log (MQ_ATTEMPT_LOG) does not hold all attempts of {words.count(len(gaps), 'queue')}; judged by"
        " tasks that are done against attempts that succeeded."
    )


def _gaps(figures: Figures, gaps: list[Row]) -> Html | None:
    if not gaps:
        return None
    columns = [
        Column("Queue", lambda row: label(row["queue"], figures, "queue"), is_number=False),
        Column("The log holds", _told, is_number=False),
        Column("Done tasks", lambda row: words.number(row["done"])),
        Column("Successes logged", lambda row: words.number(row["logged_successes"])),
        Column("Failures logged", lambda row: words.number(row["logged_failures"])),
        Column(
            "So missing here", lambda row: tag("span", MISSING[Logged(row["logged"])], class_="long"), is_number=False
        ),
    ]
    return table(gaps, columns, "")


def _told(row: Row) -> Html:
    logged = Logged(row["logged"])
    share = f", {words.percent(row['logged_share'])}" if logged is Logged.PART else ""
    return tag("span", TOLD[logged] + share, class_="badge warn")


def _meant(figures: Figures) -> Html:
    return tag("ul", [tag("li", sentence) for sentence in (*_cuts(figures), *MEANINGS)], class_="note")


def _cuts(figures: Figures) -> list[str]:
    return [
        f"Of {words.number(found.total)} {name}s the {len(found.kept)} busiest are shown, the others as one."
        for name, found in figures.labels.items()
        if found.cut
    ]


MEANINGS = (
    "All times are UTC. A task belongs to the time at which it finished, an attempt to the time at which it ended.",
    "Succeeded: done tasks out of those that were done or died. Expired and cancelled tasks count as neither.",
    "Wait: from due to first lease. The time due is the row's available_at, or created_at if that is later. A retry"
    " overwrites it, so the wait of a task is only known if that time is not after its first lease.",
    "Run time: from lease to settle. p50, p95 and p99: so many percent of them are not longer; the rank is exact to"
    " one in ten thousand.",
    "Failed attempts are those that ended in nack, fail, a lost lease or a forced cancel. A worker that reports"
    " exactly “lease expired” as its error looks like a lost lease.",
    "Queues of one name in several tenants are shown as one, except in the advice.",
)
