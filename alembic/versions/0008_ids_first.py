"""PostgreSQL: indexes by id begin with the id, and the tenant stands behind it.

Where the tenant comes first, each comparison on the way to an entry compares the tenant before it gets to the id, which
is what tells. See `docs/adr/0028-ids-before-tenants.md`.

Revision ID: 0008
Revises: 0007
"""

from typing import NamedTuple

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


class ById(NamedTuple):
    """An index by the ids of a table's tasks."""

    name: str
    table: str
    column: str
    unique: bool = False
    fillfactor: int = 90


INDEXES = (
    # Half full: a lease adds an entry beside the one of its task.
    ById("uq_mq_tasks_id", "mq_tasks", "id", unique=True, fillfactor=50),
    ById("ix_mq_task_history_task", "mq_task_history", "task_id"),
    ById("ix_mq_task_dlq_task", "mq_task_dlq", "task_id"),
    ById("ix_mq_task_attempts_task", "mq_task_attempts", "task_id"),
)


def upgrade() -> None:
    for index in INDEXES:
        make_anew(index, index.column, "tenant_id")


def downgrade() -> None:
    for index in INDEXES:
        make_anew(index, "tenant_id", index.column)


def make_anew(index: ById, *columns: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index(index.name, index.table)
        options = {"fillfactor": index.fillfactor}
        op.create_index(index.name, index.table, list(columns), unique=index.unique, postgresql_with=options)
