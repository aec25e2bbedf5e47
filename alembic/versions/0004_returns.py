"""How often something came back to a queue: what is remembered of where its ready tasks begin holds until then.

Only PostgreSQL remembers that: elsewhere what was taken leaves nothing behind that a reserve would walk through.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = "mq_queue_returns"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.create_table(
            TABLE,
            sa.Column("queue_id", sa.BigInteger(), primary_key=True, autoincrement=False),
            sa.Column("returns", sa.BigInteger(), nullable=False),
            # It is written over and over, never in an index.
            postgresql_with={"fillfactor": 50},
            if_not_exists=True,
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_table(TABLE, if_exists=True)
