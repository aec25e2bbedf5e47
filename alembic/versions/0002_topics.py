"""Topics, and operations that go on in the background.

Revision ID: 0002
Revises: 0001
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLE_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_0900_bin",
    "if_not_exists": True,
}
INSTANT = (
    sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql").with_variant(sa.BigInteger(), "sqlite")
)


def text(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "mq_topics",
        sa.Column("tenant_id", text(64), primary_key=True),
        sa.Column("name", text(255), primary_key=True),
        sa.Column("created_at", INSTANT, nullable=False),
        **TABLE_OPTIONS,
    )
    op.create_table(
        "mq_operations",
        sa.Column("tenant_id", text(64), primary_key=True),
        sa.Column("id", text(64), primary_key=True),
        sa.Column("status", text(16), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("rate_per_second", sa.Double(), nullable=False),
        sa.Column("requeued", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        # Dead letters up to this one have been looked at, and beyond the last one there was nothing at the start.
        sa.Column("after_id", sa.BigInteger(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        # When the next few may go: whoever comes then takes them, so no replica owns an operation.
        sa.Column("next_at", INSTANT, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.CheckConstraint("status IN ('running', 'done', 'stopped')", "ck_mq_operations_status"),
        sa.CheckConstraint("(status = 'running') = (finished_at IS NULL)", "ck_mq_operations_finished"),
        **TABLE_OPTIONS,
    )


def downgrade() -> None:
    op.drop_table("mq_operations", if_exists=True)
    op.drop_table("mq_topics", if_exists=True)
