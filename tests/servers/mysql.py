"""MySQL: the server that MQ_TEST_MYSQL_URL names, else a `mysqld` on the PATH, else one from Debian's sid suite."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import asyncmy

from tests.servers import debian
from tests.servers.ports import LOOPBACK, free_port, is_listening
from tests.servers.process import ServerProcess, give_to_servers_user, run
from tests.servers.server import Server, Unavailable

SETTINGS = (
    f"--bind-address={LOOPBACK}",
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--skip-name-resolve",
    # Far from UTC, so that a time zone mistake shows.
    "--default-time-zone=+09:00",
    # A test's data need to outlive the server, not the machine.
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=2",
)

# The insecure initial account is root@localhost, which no TCP connection is without name resolution.
ADMINISTRATOR = "CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"


class MysqlServer(Server):
    """A MySQL server of the tests."""

    name = "mysql"

    def drop_database(self, name: str) -> None:
        """Drop the database; fail when a transaction that was left open still holds it."""
        self._execute(f"DROP DATABASE {name}")

    def _execute(self, statement: str) -> None:
        # In a thread of its own, since the caller's may be running an event loop.
        with ThreadPoolExecutor(max_workers=1) as pool:
            pool.submit(asyncio.run, self._execute_async(statement)).result()

    async def _execute_async(self, statement: str) -> None:
        async with (
            asyncmy.connect(
                host=self._url.hostname or LOOPBACK,
                port=self._url.port or 3306,
                user=unquote(self._url.username or "root"),
                password=unquote(self._url.password or ""),
                # The server's default is to wait for a year.
                init_command="SET lock_wait_timeout = 10",
            ) as connection,
            connection.cursor() as cursor,
        ):
            await cursor.execute(statement)


def start_mysql(directory: Path) -> Server | Unavailable:
    """Start a fresh MySQL server, or take the one that is named, or say why there is none."""
    return start_mysql_with(SETTINGS, directory)


def start_mysql_with(settings: Sequence[str], directory: Path) -> Server | Unavailable:
    """Start one with other settings; one that is named keeps its own."""
    if url := os.environ.get("MQ_TEST_MYSQL_URL"):
        return MysqlServer(url, process=None)
    give_to_servers_user(directory)
    log = directory / "mysql.log"
    if mysqld := _mysqld_on_path():
        return _start([mysqld, *settings], root=Path("/"), workspace=directory, log=log)
    try:
        root = debian.mysql_root()
    except debian.CannotInstallError as error:
        return Unavailable(f"no MySQL server: {error}; set MQ_TEST_MYSQL_URL or put MySQL's mysqld on the PATH")
    workspace = debian.claim_workspace(root)
    command = ["/usr/sbin/mysqld", *settings]
    return _start(command, root=root, workspace=workspace.path, log=log, clean_up=workspace.remove)


def _mysqld_on_path() -> str | None:
    """Return MySQL's own server program; MariaDB goes by the same name and is another database."""
    mysqld = shutil.which("mysqld", path=debian.SEARCH_PATH)
    if mysqld is None:
        return None
    version = subprocess.run([mysqld, "--version"], capture_output=True, text=True, check=False).stdout
    return None if "MariaDB" in version else mysqld


def _start(
    command: Sequence[str], *, root: Path, workspace: Path, log: Path, clean_up: Callable[[], None] = lambda: None
) -> Server:
    """Start `mysqld` in `root` with fresh data in the workspace, which lies below it."""
    mysqld, *settings = command
    inside, port = Path("/") / workspace.relative_to(root), free_port()
    data = f"--datadir={inside}/data"
    (workspace / "administrator.sql").write_text(ADMINISTRATOR)
    run([mysqld, "--no-defaults", "--initialize-insecure", data, f"--init-file={inside}/administrator.sql"], root)
    process = ServerProcess(
        [mysqld, "--no-defaults", data, f"--socket={inside}/mysql.sock", f"--port={port}", *settings],
        log=log,
        is_ready=lambda: is_listening(port),
        root=root,
    )
    process.start()
    return MysqlServer(f"mysql://root@{LOOPBACK}:{port}", process, clean_up)
