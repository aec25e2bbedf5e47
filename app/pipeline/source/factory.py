"""From a database URL as users write it to a database that can be read: the only place that names the dialects."""

from collections.abc import Iterator
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
    kind: type[Database] = getattr(import_module(f"app.pipeline.source.{module}"), name)
    return kind(_address(url, kind))


def _address(url: URL, kind: type[Database]) -> Address:
    return Address(
        database=url.database or "",
        host=url.host or "localhost",
        port=url.port,
        user=url.username or "",
        password=str(url.password or ""),
        options=tuple(_options(url, kind)),
    )


def _options(url: URL, kind: type[Database]) -> Iterator[tuple[str, str]]:
    """What the URL says behind the `?`. Raises `PipelineError` for what would not be done: it may be about safety."""
    for name, value in url.query.items():
        if name not in kind.known_options:
            known = ", ".join(sorted(kind.known_options))
            raise PipelineError(f"the pipeline cannot honour the option {name} of a {kind.name} URL; it knows {known}")
        if not isinstance(value, str):
            raise PipelineError(f"the option {name} of the database URL is given more than once")
        yield name, value
