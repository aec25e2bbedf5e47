"""Room beside every task for the version of its row that a lease makes, and a prompt vacuum of what is left behind.

Only PostgreSQL writes a new version for every change; see `docs/adr/0024-room-for-leases.md`.

Revision ID: 0005
Revises: 0004
"""

from collections.abc import Mapping

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# What is not in the partial indexes of one status is in these, ready or leased.
ALWAYS_INDEXED = ("mq_tasks_pkey", "uq_mq_tasks_id")
HALF_FULL = {"fillfactor": 50}
VACUUM_SOON = {
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_insert_scale_factor": 0.05,
    "autovacuum_vacuum_cost_limit": 2000,
}


def upgrade() -> None:
    set_options("TABLE", "mq_tasks", HALF_FULL | VACUUM_SOON)
    for index in ALWAYS_INDEXED:
        set_options("INDEX", index, HALF_FULL)


def downgrade() -> None:
    reset_options("TABLE", "mq_tasks", HALF_FULL | VACUUM_SOON)
    for index in ALWAYS_INDEXED:
        reset_options("INDEX", index, HALF_FULL)


def set_options(kind: str, name: str, options: Mapping[str, float]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        given = ", ".join(f"{option} = {value}" for option, value in options.items())
        op.execute(f"ALTER {kind} {name} SET ({given})")


def reset_options(kind: str, name: str, options: Mapping[str, float]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER {kind} {name} RESET ({', '.join(options)})")
