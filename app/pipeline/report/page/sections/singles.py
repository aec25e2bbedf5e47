"""Single tasks that stand out, tenants, and what is live now."""

from app.pipeline.report.figures import Figures, Row, busiest
from app.pipeline.report.page import words
from app.pipeline.report.page.blocks import label, note, section
from app.pipeline.report.page.html import Child, Html, markup, tag
from app.pipeline.report.page.marks import Column, nothing, share_of_largest, table

BADGES = {"done": "good", "dead": "bad", "expired": "warn", "cancelled": "mute"}


def single_tasks(figures: Figures) -> Html:
    return section(
        "Tasks that stand out",
        "tasks",
        None,
        tag("h3", "Longest attempts"),
        _slowest(figures.rows("slowest_tasks")),
        tag("h3", "Most attempts"),
        _most_retried(figures.rows("most_retried_tasks")),
    )


def _slowest(rows: list[Row]) -> Html:
    columns = [
        _task(),
        Column("Attempt", lambda row: words.number(row["attempt_no"])),
        Column("Took", lambda row: words.seconds(row["seconds"]), bar=share_of_largest(rows, "seconds"), colour="c3"),
        Column("Ended", lambda row: words.moment(row["finished_at"])),
        Column("", lambda row: _badge("succeeded" if row["success"] else "failed", row["success"]), is_number=False),
    ]
    return table(rows, columns, "The attempt log holds no attempt of this time.")


def _most_retried(rows: list[Row]) -> Html:
    columns = [
        _task(),
        Column(
            "Attempts", lambda row: words.number(row["attempts"]), bar=share_of_largest(rows, "attempts"), colour="c2"
        ),
        Column("", lambda row: tag("span", row["status"], class_=f"badge {BADGES[row['status']]}"), is_number=False),
        Column(
            "From first to last", lambda row: words.seconds((row["finished_at"] - row["created_at"]).total_seconds())
        ),
        Column(
            "Died of", lambda row: tag("span", words.short(row["reason"] or "", 90), class_="long"), is_number=False
        ),
    ]
    return table(rows, columns, "No task took more than one attempt.")


def _task() -> Column:
    """Tasks by their ids, and below each whose it is: in columns of their own the names would take others' room."""
    return Column(
        "Task, and its queue · type · tenant",
        lambda row: markup(tag("code", row["task_id"]), _whose(row)),
        is_number=False,
    )


def _whose(row: Row) -> Html:
    return tag("small", f"{row['queue']} · {words.name(row['type'])} · {row['tenant']}")


def _badge(text: str, good: bool) -> Child:
    return tag("span", text, class_=f"badge {'good' if good else 'bad'}")


def tenants(figures: Figures) -> Html:
    """Who used how much."""
    rows = figures.rows("usage_by_tenant")
    all_tasks = sum(row["tasks"] for row in rows) or 1
    columns = [
        Column("Tenant", lambda row: label(row["tenant"], figures, "tenant"), is_number=False),
        Column("Tasks", lambda row: words.number(row["tasks"]), bar=share_of_largest(rows, "tasks")),
        Column("Of all", lambda row: words.percent(row["tasks"] / all_tasks)),
        Column("Work", lambda row: words.seconds(row["seconds"]), bar=share_of_largest(rows, "seconds"), colour="c3"),
        Column(
            "Payload",
            lambda row: words.size(row["payload_bytes"]),
            bar=share_of_largest(rows, "payload_bytes"),
            colour="c5",
        ),
    ]
    told = "Finished tasks, the time that logged attempts held a lease, and bytes of payload as they were given."
    return section("Usage by tenant", "tenants", told, table(rows, columns, "No tenant finished a task in this time."))


def backlog(figures: Figures) -> Html | None:
    """What is live now, if a live database was asked."""
    if not figures.is_live:
        return None
    rows = figures.rows("backlog_by_queue")
    title, told = "Live now", f"What is in the queues at {words.instant(figures.made_at)}."
    if not rows:
        return section(title, "live", told, nothing("Nothing waits, nothing runs: all queues are empty."))
    columns = [
        Column("Queue", lambda row: label(row["queue"], figures, "queue"), is_number=False),
        Column("Ready", lambda row: words.number(row["ready"]), bar=share_of_largest(rows, "ready")),
        Column("Oldest ready", lambda row: words.seconds(row["oldest_ready_seconds"])),
        Column(
            "Scheduled",
            lambda row: words.number(row["scheduled"]),
            bar=share_of_largest(rows, "scheduled"),
            colour="c5",
        ),
        Column("Next due", lambda row: words.moment(row["next_at"]) if row["next_at"] else words.MISSING),
        Column("Leased", lambda row: words.number(row["leased"]), bar=share_of_largest(rows, "leased"), colour="c3"),
    ]
    small_print = note(
        "A task that is due counts as ready, and so does one whose lease is over: the next reserve gets it."
    )
    return section(title, "live", told, markup(table(busiest(rows, "ready"), columns, ""), small_print))
