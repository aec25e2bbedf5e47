"""When to look at the graves of queues again: most of them hold nothing, and there may be very many.

Revision ID: 0003
Revises: 0002
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE = "mq_queue_graves"
INSTANT = (
    sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql").with_variant(sa.BigInteger(), "sqlite")
)
INDEXES = {
    "ix_mq_queue_graves_look": ("tenant_id", "look_at"),
    "ix_mq_queue_graves_clear": ("clear_at",),
    "ix_mq_queue_graves_leases": ("tenant_id", "has_leases"),
}


def upgrade() -> None:
    """What is there already is left: where DDL commits by itself, a migration that was cut off is run again."""
    for column in new_columns():
        if column.name not in columns():
            op.add_column(TABLE, column)
    for name, parts in INDEXES.items():
        if name not in indexes():
            op.create_index(name, TABLE, list(parts))
    if "ix_mq_queue_graves_tenant" in indexes():
        op.drop_index("ix_mq_queue_graves_tenant", TABLE)


def downgrade() -> None:
    if "ix_mq_queue_graves_tenant" not in indexes():
        op.create_index("ix_mq_queue_graves_tenant", TABLE, ["tenant_id"])
    for name in INDEXES:
        if name in indexes():
            op.drop_index(name, TABLE)
    for column in new_columns():
        if column.name in columns():
            op.drop_column(TABLE, column.name)


def new_columns() -> Iterator[sa.Column[object]]:
    # When time may have changed something for callers, and when something may be there to be cleared away.
    yield sa.Column("look_at", INSTANT, nullable=False, server_default=long_ago())
    yield sa.Column("clear_at", INSTANT, nullable=False, server_default=long_ago())
    # Whether, when somebody last looked, a worker still had a task of the queue.
    yield sa.Column("has_leases", sa.Boolean(), nullable=False, server_default=sa.true())


def long_ago() -> str:
    """Graves that are there are looked at as soon as somebody comes."""
    dialect = op.get_bind().dialect.name
    return {"sqlite": "0", "mysql": "1970-01-02 00:00:00"}.get(dialect, "1970-01-02 00:00:00+00")


def columns() -> set[str]:
    return {column["name"] for column in sa.inspect(op.get_bind()).get_columns(TABLE)}


def indexes() -> set[str | None]:
    return {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(TABLE)}
