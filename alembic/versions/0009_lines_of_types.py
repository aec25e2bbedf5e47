"""MySQL: a task without a type stands still in the index by type.

Every task has an entry there, and one of no type has it only because there are no partial indexes. With columns of its
own that say nothing of such a task, the index is left alone when the task is leased. See
`docs/adr/0026-one-line-in-mysql.md`.

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

UPGRADE = """
ALTER TABLE mq_tasks
    ADD COLUMN type_rank BIGINT GENERATED ALWAYS AS (
        CASE WHEN status = 'ready' AND type <> '' THEN -priority END
    ) STORED,
    ADD COLUMN type_at DATETIME(6) GENERATED ALWAYS AS (
        CASE WHEN status = 'ready' AND type <> '' THEN available_at END
    ) STORED,
    DROP INDEX ix_mq_tasks_ready_of_type,
    ADD INDEX ix_mq_tasks_ready_of_type (queue_id, line_type, type_rank, type_at, seq)
"""

DOWNGRADE = """
ALTER TABLE mq_tasks
    DROP INDEX ix_mq_tasks_ready_of_type,
    DROP COLUMN type_rank,
    DROP COLUMN type_at,
    ADD INDEX ix_mq_tasks_ready_of_type (queue_id, line_type, line_rank, line_at, seq)
"""


def upgrade() -> None:
    """The whole of it is one statement, which MySQL makes or leaves as one."""
    if op.get_bind().dialect.name == "mysql" and not has_lines_of_types():
        op.execute(UPGRADE)


def downgrade() -> None:
    if op.get_bind().dialect.name == "mysql" and has_lines_of_types():
        op.execute(DOWNGRADE)


def has_lines_of_types() -> bool:
    return "type_at" in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("mq_tasks")}
