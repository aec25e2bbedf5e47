"""The schema's version: bringing a database up to this code's, and refusing one that is ahead of it."""

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.repository.dialect import Dialect

PACKAGE = Path(__file__).resolve().parent.parent

logger = logging.getLogger(__name__)


class SchemaMismatch(Exception):
    """The database's schema is not the one that this code was written for."""


def migration_config() -> Config:
    """Where the migrations are: beside the package in a checkout, inside it in an installed wheel."""
    inside = PACKAGE / "alembic"
    config = Config()
    config.set_main_option("script_location", str(inside if inside.is_dir() else PACKAGE.parent / "alembic"))
    return config


def head_revision() -> str:
    head = ScriptDirectory.from_config(migration_config()).get_current_head()
    assert head is not None
    return head


async def migrate(dialect: Dialect, revision: str = "head") -> None:
    """Brings the schema to a revision; any number of replicas may do so at the same moment."""
    async with dialect.connect(write=True) as connection, dialect.migration_lock(connection):
        before = await connection.run_sync(_current_revision)
        _refuse_unknown(before)
        await connection.run_sync(_run, revision)
        after = await connection.run_sync(_current_revision)
        await connection.commit()
    if before != after:
        logger.info("schema migrated from %s to %s", before or "nothing", after or "nothing")


async def check_schema(dialect: Dialect) -> None:
    """Raises `SchemaMismatch` unless the database is at this code's revision."""
    current = await read_revision(dialect)
    _refuse_unknown(current)
    if current != head_revision():
        raise SchemaMismatch(
            f"The database is at schema revision {current or 'nothing'}, this version of LeaseMQ needs"
            f" {head_revision()}: run `leasemq migrate`."
        )


async def read_revision(dialect: Dialect) -> str | None:
    """The database's revision, None if it has none."""
    async with dialect.connect(write=False) as connection:
        return await connection.run_sync(_current_revision)


def _run(connection: Connection, revision: str) -> None:
    config = migration_config()
    config.attributes["connection"] = connection
    current = _current_revision(connection)
    if revision != "head" and current is not None and _is_ancestor(revision, current):
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)


def _current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _is_ancestor(revision: str, current: str) -> bool:
    script = ScriptDirectory.from_config(migration_config())
    ancestors = {known.revision for known in script.iterate_revisions(current, "base")}
    return revision == "base" or (revision != current and revision in ancestors)


def _refuse_unknown(revision: str | None) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(migration_config()).walk_revisions()}
    if revision is not None and revision not in known:
        raise SchemaMismatch(
            f"The database is at schema revision {revision}, which this version of LeaseMQ does not know:"
            " it was migrated by a newer one. Upgrade LeaseMQ, or use another database."
        )
