"""From a database URL as users write it to a repository: the only place that names the dialects."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.task import AttemptLog
from app.repository.dialect import Dialect
from app.repository.maintenance_repository import SqlMaintenanceRepository
from app.repository.mysql import MySQL, connect_mysql
from app.repository.mysql_shortcuts import MySQLShortcuts
from app.repository.pool import PoolSettings
from app.repository.postgresql import PostgreSQL, connect_postgresql
from app.repository.postgresql_bell import PostgreSQLBell
from app.repository.postgresql_shortcuts import PostgreSQLShortcuts
from app.repository.protocol import Bell, MaintenanceRepository, Repository, TopologyRepository
from app.repository.repository import SqlRepository
from app.repository.session import AttemptsLostHook, Database
from app.repository.shortcuts import Shortcuts
from app.repository.sqlite import SQLite, connect_sqlite
from app.repository.topology_repository import SqlTopologyRepository

# How long a full count may take; it is made so seldom that it takes a small part of the time.
PATIENCE_SECONDS = 60.0

Connect = Callable[[URL, PoolSettings], AsyncEngine]

DIALECTS: dict[str, tuple[Connect, type[Dialect]]] = {
    "postgresql": (connect_postgresql, PostgreSQL),
    "postgres": (connect_postgresql, PostgreSQL),
    "mysql": (connect_mysql, MySQL),
    "sqlite": (connect_sqlite, SQLite),
}


def connect_dialect(database_url: str, pool: PoolSettings | None = None) -> Dialect:
    """The dialect of a URL with an engine on it, not connected yet. Raises ValueError for a URL that is not one."""
    try:
        url = make_url(database_url)
    except ArgumentError as error:
        # The URL may hold a password: it is not repeated.
        raise ValueError("the database URL cannot be read; write postgresql://…, mysql://… or sqlite:///…") from error
    try:
        connect, dialect = DIALECTS[url.drivername.partition("+")[0]]
    except KeyError:
        raise ValueError(f"no such kind of database: {url.drivername}; there are {', '.join(DIALECTS)}") from None
    settings = pool or PoolSettings()
    return dialect(connect(url, settings), settings)


@dataclass(frozen=True, slots=True)
class Repositories:
    """All that is kept in one database."""

    tasks: Repository
    topology: TopologyRepository
    maintenance: MaintenanceRepository
    bell: Bell | None
    # How many transactions of a kind are worth having under way at once, and how many tasks are worth one more.
    writers: int
    worthwhile: int


def open_repositories(
    dialect: Dialect,
    *,
    timeout_seconds: float,
    attempt_log: AttemptLog = AttemptLog.ALL,
    on_attempts_lost: AttemptsLostHook = lambda attempts: None,
) -> Repositories:
    """The repositories on a database whose schema is up to date."""
    database, patient = (
        Database(dialect, timeout_seconds=seconds, attempt_log=attempt_log, on_attempts_lost=on_attempts_lost)
        for seconds in (timeout_seconds, max(timeout_seconds, PATIENCE_SECONDS))
    )
    return Repositories(
        tasks=SqlRepository(database, _shortcuts(database)),
        topology=SqlTopologyRepository(database, patient),
        maintenance=SqlMaintenanceRepository(database),
        bell=PostgreSQLBell(dialect.engine) if isinstance(dialect, PostgreSQL) else None,
        writers=dialect.writers,
        worthwhile=dialect.worthwhile,
    )


def _shortcuts(database: Database) -> Shortcuts | None:
    if isinstance(database.dialect, PostgreSQL):
        return PostgreSQLShortcuts(database, database.dialect.memory)
    return MySQLShortcuts(database) if isinstance(database.dialect, MySQL) else None


def open_repository(
    dialect: Dialect,
    *,
    timeout_seconds: float,
    attempt_log: AttemptLog = AttemptLog.ALL,
    on_attempts_lost: AttemptsLostHook = lambda attempts: None,
) -> Repository:
    """The tasks alone."""
    return open_repositories(
        dialect, timeout_seconds=timeout_seconds, attempt_log=attempt_log, on_attempts_lost=on_attempts_lost
    ).tasks


def connect_engine(database_url: str) -> AsyncEngine:
    """An engine alone, for work on the schema."""
    return connect_dialect(database_url).engine
