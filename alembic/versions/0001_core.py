"""The core: live tasks, finished tasks, dead letters, attempts.

Revision ID: 0001
Revises:
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# MySQL's default collation takes `Key` and `key` for the same; PostgreSQL's may sort by language. Bytes decide here.
TABLE_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_0900_bin",
    "sqlite_autoincrement": True,
    "if_not_exists": True,
}

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = (
    sa.DateTime(timezone=True)
    .with_variant(mysql.DATETIME(fsp=6), "mysql")
    # SQLite has no type for times: microseconds since 1970, UTC.
    .with_variant(sa.BigInteger(), "sqlite")
)
BYTES = sa.LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql")


def text(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def described() -> Iterator[sa.Column[object]]:
    """What a task is from its first moment to its last, in every table that holds one."""
    yield sa.Column("queue", text(255), nullable=False)
    yield sa.Column("topic", text(255), nullable=False)
    yield sa.Column("publish_id", text(64))
    yield sa.Column("type", text(255), nullable=False)
    yield sa.Column("payload", BYTES, nullable=False)
    yield sa.Column("payload_is_json", sa.Boolean(), nullable=False)
    yield sa.Column("content_type", text(255), nullable=False)
    yield sa.Column("meta", sa.Text(), nullable=False)
    # About how many bytes the task adds to a reply.
    yield sa.Column("size", sa.Integer(), nullable=False)
    yield sa.Column("priority", sa.Integer(), nullable=False)
    yield sa.Column("dedupe_key", text(128))
    yield sa.Column("dedupe_seconds", sa.Double(), nullable=False)
    yield sa.Column("attempts", sa.Integer(), nullable=False)
    yield sa.Column("max_attempts", sa.Integer(), nullable=False)
    yield sa.Column("available_at", INSTANT, nullable=False)
    yield sa.Column("expires_at", INSTANT)
    yield sa.Column("timeout_seconds", sa.Double())
    yield sa.Column("first_leased_at", INSTANT)
    yield sa.Column("last_worker", text(128))
    yield sa.Column("last_token_hash", text(32))
    yield sa.Column("last_token_fate", text(16))
    # The token that failed the task before it was requeued: its worker may ask again.
    yield sa.Column("failed_token_hash", text(32))
    yield sa.Column("last_error", sa.Text())
    yield sa.Column("last_error_at", INSTANT)
    yield sa.Column("created_at", INSTANT, nullable=False)


def create_table(name: str, *parts: sa.schema.SchemaItem, **options: Any) -> None:
    """What is there already is left: where DDL commits by itself, a migration that was cut off is run again."""
    indexes = [part for part in parts if isinstance(part, sa.Index)]
    op.create_table(name, *(part for part in parts if not isinstance(part, sa.Index)), **{**TABLE_OPTIONS, **options})
    there = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(name)}
    for index in indexes:
        if index.name not in there:
            op.create_index(index.name, name, list(index.expressions), unique=index.unique, **index.dialect_kwargs)


def upgrade() -> None:
    create_queues()
    create_tasks()
    create_history()
    create_dead_letters()
    create_attempts()


def downgrade() -> None:
    for table in ("mq_task_attempts", "mq_task_dlq", "mq_task_history", "mq_tasks", "mq_queue_graves", "mq_queues"):
        op.drop_table(table, if_exists=True)


def create_queues() -> None:
    create_table(
        "mq_queues",
        # Never used again: it tells the lives of queues of one name apart.
        sa.Column("id", NUMBER, sa.Identity(), primary_key=True, autoincrement=True),
        sa.Column("tenant_id", text(64), nullable=False),
        sa.Column("name", text(255), nullable=False),
        # A queue that nobody declared has a row too, from its first task on.
        sa.Column("declared", sa.Boolean(), nullable=False),
        sa.Column("topic", text(255)),
        sa.Column("exclusive", sa.Boolean(), nullable=False),
        sa.Column("keep_alive_seconds", sa.Double(), nullable=False),
        sa.Column("keep_alive_until", INSTANT),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("lease_seconds", sa.Double(), nullable=False),
        sa.Column("max_lease_seconds", sa.Double(), nullable=False),
        sa.Column("backoff_base_seconds", sa.Double(), nullable=False),
        sa.Column("backoff_factor", sa.Double(), nullable=False),
        sa.Column("backoff_max_seconds", sa.Double(), nullable=False),
        sa.Column("backoff_jitter", sa.Double(), nullable=False),
        sa.Column("rate_per_second", sa.Double()),
        sa.Column("concurrency_limit", sa.Integer()),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("history_days", sa.Double()),
        sa.Column("dlq_days", sa.Double()),
        # The token bucket of the rate: how many deliveries were left at that moment.
        sa.Column("rate_left", sa.Double(), nullable=False),
        sa.Column("rate_left_at", INSTANT, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.CheckConstraint("exclusive = (keep_alive_until IS NOT NULL)", "ck_mq_queues_exclusive_ends"),
        sa.Index("uq_mq_queues_name", "tenant_id", "name", unique=True),
        partial("ix_mq_queues_topic", "tenant_id", "topic", where="topic IS NOT NULL"),
        partial("ix_mq_queues_exclusive", "keep_alive_until", where="keep_alive_until IS NOT NULL"),
    )
    create_table(
        "mq_queue_graves",
        # The id of a queue that is gone, and whose tasks are still to be deleted.
        sa.Column("queue_id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("tenant_id", text(64), nullable=False),
        # When the queue was gone for everybody who looked, and when somebody noticed.
        sa.Column("ended_at", INSTANT, nullable=False),
        sa.Column("deleted_at", INSTANT, nullable=False),
        sa.Index("ix_mq_queue_graves_tenant", "tenant_id"),
        sqlite_autoincrement=False,
    )


def create_tasks() -> None:
    create_table(
        "mq_tasks",
        # The order of acceptance.
        sa.Column("seq", NUMBER, sa.Identity(), primary_key=True, autoincrement=True),
        sa.Column("tenant_id", text(64), nullable=False),
        # One life of a queue: when it is deleted its tasks are too, and a new one of its name starts empty.
        sa.Column("queue_id", NUMBER, nullable=False),
        # NULL only in a tombstone: a done task's row that still holds the dedupe key, but no longer the id.
        sa.Column("id", text(64)),
        sa.Column("tombstone_id", text(64)),
        *described(),
        sa.Column("status", text(16), nullable=False),
        sa.Column("lease_owner", text(128)),
        sa.Column("lease_token_hash", text(32)),
        sa.Column("lease_until", INSTANT),
        sa.Column("leased_at", INSTANT),
        sa.Column("dedupe_until", INSTANT),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.CheckConstraint("status IN ('scheduled', 'ready', 'leased', 'done')", "ck_mq_tasks_status"),
        sa.CheckConstraint("attempts >= 0 AND max_attempts >= 0", "ck_mq_tasks_attempts"),
        sa.CheckConstraint(
            "(lease_owner IS NULL) = (lease_until IS NULL)"
            " AND (lease_token_hash IS NULL) = (lease_until IS NULL)"
            " AND (leased_at IS NULL) = (lease_until IS NULL)",
            "ck_mq_tasks_lease_is_whole",
        ),
        sa.CheckConstraint("(status = 'leased') = (lease_until IS NOT NULL)", "ck_mq_tasks_leased_has_lease"),
        sa.CheckConstraint(
            "(status = 'done') = (id IS NULL)"
            " AND (status = 'done') = (tombstone_id IS NOT NULL)"
            " AND (status = 'done') = (dedupe_until IS NOT NULL)",
            "ck_mq_tasks_tombstone_has_no_id",
        ),
        sa.CheckConstraint("(last_token_hash IS NULL) = (last_token_fate IS NULL)", "ck_mq_tasks_last_token"),
        *task_indexes(op.get_bind().dialect.name),
    )


def task_indexes(dialect: str) -> Iterator[sa.Index]:
    """Each index ends where its statement should: partial where the dialect can, behind the status in MySQL."""
    status = ("status",) if dialect == "mysql" else ()
    in_order = (sa.text("priority DESC"), "available_at", "seq")
    yield sa.Index("uq_mq_tasks_id", "tenant_id", "id", unique=True)
    yield partial("uq_mq_tasks_dedupe", "queue_id", "dedupe_key", where="dedupe_key IS NOT NULL", unique=True)
    yield partial("ix_mq_tasks_ready", "queue_id", *status, *in_order, where="status = 'ready'")
    yield partial(
        "ix_mq_tasks_ready_of_type", "queue_id", *status, "type", *in_order, where="status = 'ready' AND type <> ''"
    )
    yield partial("ix_mq_tasks_scheduled", "queue_id", *status, "available_at", where="status = 'scheduled'")
    yield partial("ix_mq_tasks_leased", "queue_id", "lease_until", where="status = 'leased'")
    yield partial(
        "ix_mq_tasks_expiring", "queue_id", "expires_at",
        where="expires_at IS NOT NULL AND status IN ('scheduled', 'ready')",
    )  # fmt: skip
    yield partial("ix_mq_tasks_tombstones", "dedupe_until", where="status = 'done'")


def partial(name: str, *columns: Any, where: str, unique: bool = False) -> sa.Index:
    condition = sa.text(where)
    return sa.Index(name, *columns, unique=unique, postgresql_where=condition, sqlite_where=condition)


def create_history() -> None:
    create_table(
        "mq_task_history",
        sa.Column("id", NUMBER, sa.Identity(), primary_key=True, autoincrement=True),
        sa.Column("tenant_id", text(64), nullable=False),
        sa.Column("task_id", text(64), nullable=False),
        *described(),
        sa.Column("status", text(16), nullable=False),
        sa.Column("result", LONG_TEXT),
        sa.Column("finished_at", INSTANT, nullable=False),
        # When the row may go; NULL keeps it for ever.
        sa.Column("keep_until", INSTANT),
        sa.CheckConstraint("status IN ('done', 'expired', 'cancelled')", "ck_mq_task_history_status"),
        sa.Index("ix_mq_task_history_task", "tenant_id", "task_id"),
        sa.Index("ix_mq_task_history_finished", "tenant_id", "status", "finished_at", "id"),
        sa.Index("ix_mq_task_history_queue", "tenant_id", "queue", "status", "finished_at", "id"),
        partial("ix_mq_task_history_keep", "keep_until", where="keep_until IS NOT NULL"),
    )


def create_dead_letters() -> None:
    create_table(
        "mq_task_dlq",
        sa.Column("id", NUMBER, sa.Identity(), primary_key=True, autoincrement=True),
        sa.Column("tenant_id", text(64), nullable=False),
        sa.Column("task_id", text(64), nullable=False),
        *described(),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failed_at", INSTANT, nullable=False),
        sa.Index("ix_mq_task_dlq_task", "tenant_id", "task_id"),
        sa.Index("ix_mq_task_dlq_failed", "tenant_id", "failed_at", "id"),
        sa.Index("ix_mq_task_dlq_queue", "tenant_id", "queue", "failed_at", "id"),
    )


def create_attempts() -> None:
    create_table(
        "mq_task_attempts",
        sa.Column("id", NUMBER, sa.Identity(), primary_key=True, autoincrement=True),
        sa.Column("tenant_id", text(64), nullable=False),
        sa.Column("task_id", text(64), nullable=False),
        sa.Column("queue", text(255), nullable=False),
        sa.Column("type", text(255), nullable=False),
        sa.Column("attempt_no", sa.Integer(), nullable=False),
        sa.Column("worker_id", text(128)),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT, nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Index("ix_mq_task_attempts_task", "tenant_id", "task_id"),
    )
