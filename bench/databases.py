"""Database servers with the durability that they have by default: a commit is on the disk."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from bench.scenario import CannotMeasureError
from bench.usage import children_of
from tests.servers import Server, Unavailable, mysql, postgresql

POSTGRESQL_SETTINGS = {**postgresql.SETTINGS, "fsync": "on", "max_connections": "300"}
RELAXED_MYSQL = ("--skip-log-bin", "--innodb-flush-log-at-trx-commit=2")
MYSQL_SETTINGS = tuple(setting for setting in mysql.SETTINGS if setting not in RELAXED_MYSQL)


class Databases:
    """The servers of a run, each started when it is first asked for, and fresh databases in them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._servers: dict[str, Server | Unavailable] = {}
        self._pids: dict[str, set[int]] = {}

    def create(self, dialect: str) -> str:
        """Make an empty database and return its URL."""
        name = f"bench_{uuid4().hex}"
        if dialect == "sqlite":
            return f"sqlite:///{self._directory()}/{name}.db"
        return self._server(dialect).create_database(name)

    def pids(self, dialect: str) -> set[int]:
        """The processes of the server; SQLite has none."""
        return self._pids.get(dialect, set())

    def _server(self, dialect: str) -> Server:
        if dialect not in self._servers:
            before = children_of(os.getpid())
            self._servers[dialect] = self._start(dialect)
            self._pids[dialect] = children_of(os.getpid()) - before
        server = self._servers[dialect]
        if isinstance(server, Unavailable):
            raise CannotMeasureError(server.reason)
        return server

    def _start(self, dialect: str) -> Server | Unavailable:
        directory = self._directory()
        if dialect == "postgresql":
            server: Server | Unavailable = postgresql.start_postgresql_with(POSTGRESQL_SETTINGS, directory)
        else:
            server = mysql.start_mysql_with(MYSQL_SETTINGS, directory)
        if isinstance(server, Server):
            self._stack.callback(server.close)
        return server

    def _directory(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-bench-")))
