"""MySQL: the pages of live tasks are not merged while they run empty.

Tasks that are settled leave page after page, and a page that is half empty is soon quite empty. See
`docs/adr/0027-pages-of-tasks-run-empty.md`.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# How full, in percent, a page is when InnoDB tries to merge it with another; without this, 50.
MERGE_THRESHOLD = 5


def upgrade() -> None:
    set_comment(f"MERGE_THRESHOLD={MERGE_THRESHOLD}")


def downgrade() -> None:
    set_comment("")


def set_comment(comment: str) -> None:
    """InnoDB reads this setting out of the table's comment; the table itself stays as it is."""
    if op.get_bind().dialect.name == "mysql":
        op.execute(f"ALTER TABLE mq_tasks COMMENT = '{comment}'")
