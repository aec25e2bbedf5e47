"""MySQL: one index for what waits in line, whatever its state.

It has no partial indexes: every row stands in every index, and a task that is leased and acked is put into and taken
out of each of them. Where a task stands depends on its state, so columns that the database derives from it say where.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# A ready task stands by its priority and by since when it may be taken; others by when time will move them.
UPGRADE = """
ALTER TABLE mq_tasks
    ADD COLUMN line_rank BIGINT GENERATED ALWAYS AS (
        CASE WHEN status = 'ready' THEN -priority ELSE 0 END
    ) STORED NOT NULL,
    ADD COLUMN line_at DATETIME(6) GENERATED ALWAYS AS (
        CASE status WHEN 'leased' THEN lease_until WHEN 'done' THEN dedupe_until ELSE available_at END
    ) STORED,
    ADD COLUMN line_type VARCHAR(255) GENERATED ALWAYS AS (
        CASE WHEN status = 'ready' AND type <> '' THEN type END
    ) STORED,
    DROP INDEX ix_mq_tasks_ready,
    DROP INDEX ix_mq_tasks_ready_of_type,
    DROP INDEX ix_mq_tasks_scheduled,
    DROP INDEX ix_mq_tasks_leased,
    DROP INDEX ix_mq_tasks_tombstones,
    ADD INDEX ix_mq_tasks_ready (status, queue_id, line_rank, line_at, seq),
    ADD INDEX ix_mq_tasks_ready_of_type (queue_id, line_type, line_rank, line_at, seq)
"""

DOWNGRADE = """
ALTER TABLE mq_tasks
    DROP INDEX ix_mq_tasks_ready,
    DROP INDEX ix_mq_tasks_ready_of_type,
    DROP COLUMN line_rank,
    DROP COLUMN line_at,
    DROP COLUMN line_type,
    ADD INDEX ix_mq_tasks_ready (queue_id, status, priority DESC, available_at, seq),
    ADD INDEX ix_mq_tasks_ready_of_type (queue_id, status, type, priority DESC, available_at, seq),
    ADD INDEX ix_mq_tasks_scheduled (queue_id, status, available_at),
    ADD INDEX ix_mq_tasks_leased (queue_id, lease_until),
    ADD INDEX ix_mq_tasks_tombstones (dedupe_until)
"""


def upgrade() -> None:
    """The whole of it is one statement, which MySQL makes or leaves as one."""
    if op.get_bind().dialect.name == "mysql" and not has_lines():
        op.execute(UPGRADE)


def downgrade() -> None:
    if op.get_bind().dialect.name == "mysql" and has_lines():
        op.execute(DOWNGRADE)


def has_lines() -> bool:
    return "line_at" in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("mq_tasks")}
