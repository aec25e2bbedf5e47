"""Looking at the database's health, one check a transaction: what one may not look at does not hide the rest."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from app.domain.doctor import Check, Diagnosis, Finding, Severity
from app.domain.errors import Unavailable
from app.repository.connection import Row
from app.repository.schema import SchemaMismatch, check_schema, head_revision
from app.repository.session import Database, Session

# What the migrations make, but for what a dialect does without.
INDEXES = frozenset({
    "uq_mq_queues_name", "ix_mq_queues_topic", "ix_mq_queues_exclusive", "ix_mq_queue_graves_look",
    "ix_mq_queue_graves_clear", "ix_mq_queue_graves_leases",
    "uq_mq_tasks_id", "uq_mq_tasks_dedupe", "ix_mq_tasks_ready", "ix_mq_tasks_ready_of_type", "ix_mq_tasks_scheduled",
    "ix_mq_tasks_leased", "ix_mq_tasks_expiring", "ix_mq_tasks_tombstones",
    "ix_mq_task_history_task", "ix_mq_task_history_finished", "ix_mq_task_history_queue", "ix_mq_task_history_keep",
    "ix_mq_task_dlq_task", "ix_mq_task_dlq_failed", "ix_mq_task_dlq_queue", "ix_mq_task_attempts_task",
})  # fmt: skip
# An index that is smaller costs next to nothing.
LARGE_INDEX_BYTES = 8 * 1024 * 1024
# So many dead rows slow a reserve down, if they are also more than those that live.
MANY_DEAD_ROWS = 10_000
LONG_TRANSACTION_SECONDS = 60.0
WRONG_CLOCK_SECONDS = 1.0

Examine = Callable[[Session], Awaitable[Finding]]


async def diagnose(database: Database, now: datetime | None = None) -> Diagnosis:
    """Raises `Unavailable` if the database does not answer at all."""
    server_time = await database.read(_now, now)
    examinations: Mapping[Check, Examine] = {
        Check.MISSING_INDEXES: _missing_indexes,
        Check.UNUSED_INDEXES: _unused_indexes,
        Check.DEAD_ROWS: _dead_rows,
        Check.OLDEST_TRANSACTION: _oldest_transaction,
        Check.CLOCK: _clock,
    }
    findings = [await _schema_version(database)]
    for check, examine in examinations.items():
        findings.append(await _look(database, check, examine, now))
    return Diagnosis(database.dialect.name, server_time, findings)


async def _now(session: Session) -> datetime:
    return session.now


async def _look(database: Database, check: Check, examine: Examine, now: datetime | None) -> Finding:
    try:
        return await database.read(examine, now)
    except database.dialect.errors:
        return Finding(check, Severity.UNKNOWN, "The database does not let this user look.")


async def _schema_version(database: Database) -> Finding:
    try:
        await check_schema(database.dialect)
    except SchemaMismatch as mismatch:
        return Finding(Check.SCHEMA_VERSION, Severity.WARNING, str(mismatch), "Run `leasemq migrate`.")
    except database.dialect.errors as error:
        raise Unavailable("The database does not answer.") from error
    head = head_revision()
    return Finding(Check.SCHEMA_VERSION, Severity.OK, f"The schema is at revision {head}.", facts={"revision": head})


async def _missing_indexes(session: Session) -> Finding:
    there = {row["index_name"] for row in await session.rows("list_indexes") if row["is_valid"]}
    missing = sorted(INDEXES - session.dialect.merged_indexes - there)
    if not missing:
        return Finding(Check.MISSING_INDEXES, Severity.OK, "All indexes are there.")
    return Finding(
        Check.MISSING_INDEXES,
        Severity.WARNING,
        f"{len(missing)} indexes are missing or not valid: {', '.join(missing)}.",
        "Without them calls walk whole tables. Make them again as the migrations define them.",
        {"indexes": missing},
    )


async def _unused_indexes(session: Session) -> Finding:
    rows = await session.rows("list_indexes")
    if all(row["scans"] is None for row in rows):
        return Finding(Check.UNUSED_INDEXES, Severity.UNKNOWN, "This database does not count the use of indexes.")
    unused = sorted(row["index_name"] for row in rows if _is_unused(row))
    if not unused:
        return Finding(Check.UNUSED_INDEXES, Severity.OK, "No large index is unused.")
    foreign = sorted(set(unused) - INDEXES)
    return Finding(
        Check.UNUSED_INDEXES,
        Severity.NOTICE,
        f"Nobody has used {', '.join(unused)} since the database began to count.",
        f"Drop {', '.join(foreign)}: it costs every write."
        if foreign
        else "They belong to calls that nobody makes here.",
        {"indexes": unused},
    )


def _is_unused(row: Row) -> bool:
    is_large = row["bytes"] is None or row["bytes"] >= LARGE_INDEX_BYTES
    is_ours = row["index_name"] in INDEXES
    # Where the size is not told, only indexes that somebody else made are spoken of.
    return not row["is_unique"] and row["scans"] == 0 and is_large and (row["bytes"] is not None or not is_ours)


async def _dead_rows(session: Session) -> Finding:
    rows = await session.rows("count_dead_rows")
    facts = {row["place"]: {"live": row["live"], "dead": row["dead"]} for row in rows}
    crowded = sorted(row["place"] for row in rows if row["dead"] > max(MANY_DEAD_ROWS, row["live"] or 0))
    if not crowded:
        return Finding(Check.DEAD_ROWS, Severity.OK, "Dead rows are few.", facts=facts)
    return Finding(
        Check.DEAD_ROWS,
        Severity.WARNING,
        f"There are more dead rows than live ones in: {', '.join(crowded)}.",
        "Look for a transaction that stays open, and let the database clear away more often.",
        facts,
    )


async def _oldest_transaction(session: Session) -> Finding:
    row = await session.row("oldest_transaction")
    if row is None or row["seconds"] is None:
        return _quiet(session)
    seconds = float(row["seconds"])
    facts = {"seconds": seconds}
    if seconds < LONG_TRANSACTION_SECONDS:
        detail = f"The oldest other transaction began {seconds:.0f} seconds ago."
        return Finding(Check.OLDEST_TRANSACTION, Severity.OK, detail, facts=facts)
    return Finding(
        Check.OLDEST_TRANSACTION,
        Severity.WARNING,
        f"A transaction has been open for {seconds:.0f} seconds.",
        "While it is, no row that was deleted since can be cleared away, and reserves become slower. End it.",
        facts,
    )


def _quiet(session: Session) -> Finding:
    if session.dialect.tells_of_transactions:
        return Finding(Check.OLDEST_TRANSACTION, Severity.OK, "No other transaction is open.")
    return Finding(Check.OLDEST_TRANSACTION, Severity.UNKNOWN, "This database does not tell of other transactions.")


async def _clock(session: Session) -> Finding:
    apart = abs((session.now - datetime.now(UTC)).total_seconds())
    facts = {"seconds_apart": apart}
    if apart < WRONG_CLOCK_SECONDS:
        return Finding(Check.CLOCK, Severity.OK, "The database's clock and this host's agree.", facts=facts)
    return Finding(
        Check.CLOCK,
        Severity.NOTICE,
        f"The database's clock and this host's are {apart:.1f} seconds apart.",
        "The database's decides, so the queue is not harmed; but logs will not match. Set the clocks.",
        facts,
    )
