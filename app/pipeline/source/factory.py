"""From a database URL as users write it to a database that can be read: the only place that names the dialects."""

from importlib import import_module

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from app.pipeline.errors import PipelineError
from app.pipeline.source.database import Address, Database

# Named, not imported: a worker needs the driver of the database that it reads, and no other.
DIALECTS = {
    "postgresql": "postgresql.PostgreSQL",
    "postgres": "postgresql.PostgreSQL",
    "mysql": "mysql.MySQL",
    "sqlite": "sqlite.SQLite",
}


def find_database(database_url: str) -> Database:
    """The database of a URL, not connected yet. Raises `PipelineError` for a URL that is not one."""
    try:
        url = make_url(database_url)
    except (ArgumentError, ValueError):
        # The URL may hold a password: neither it nor what was said of it is repeated.
        raise PipelineError("the database URL cannot be read; write postgresql://…, mysql://… or sqlite:///…") from None
    dialect = url.drivername.partition("+")[0]
    if dialect not in DIALECTS:
        raise PipelineError(f"no such kind of database: {dialect}; there are {', '.join(DIALECTS)}")
    module, _, name = DIALECTS[dialect].partition(".")
    database: Database = getattr(import_module(f"app.pipeline.source.{module}"), name)(_address(url))
    return database


def _address(url: URL) -> Address:
    options = [(name, value) for name, value in url.query.items() if isinstance(value, str)]
    return Address(
        database=url.database or "",
        host=url.host or "localhost",
        port=url.port,
        user=url.username or "",
        password=str(url.password or ""),
        options=tuple(options),
    )
