"""The servers of the tests are what the other tests take them for."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from sqlalchemy import NullPool, inspect, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tests.servers import Server

DRIVERS = {"postgresql": "postgresql+asyncpg", "mysql": "mysql+asyncmy", "sqlite": "sqlite+aiosqlite"}

TEST_RUN = """
import os, signal, sys
from pathlib import Path
from tests.servers.process import ServerProcess

log, awaited = Path(sys.argv[1]), sys.argv[2]
server = ServerProcess(["/bin/sh", "-c", "echo up; exec sleep 600"], log, lambda: awaited in log.read_text())
server.start()
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def engine_of(database_url: str) -> AsyncEngine:
    """Connect anew for each use: what was connected to a server that died is of no use."""
    url = make_url(database_url)
    return create_async_engine(url.set(drivername=DRIVERS[url.drivername]), poolclass=NullPool)


async def test_database_is_reachable_and_empty(database_url: str) -> None:
    async with engine_of(database_url).connect() as connection:
        assert await connection.run_sync(lambda sync: inspect(sync).get_table_names()) == []


async def test_killed_server_comes_back_with_what_was_committed(own_server: Server) -> None:
    engine = engine_of(own_server.create_database("lasting"))
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE kept (number INTEGER)"))
        await connection.execute(text("INSERT INTO kept VALUES (7)"))
    own_server.kill()
    with pytest.raises((OSError, OperationalError)):
        await engine.connect()
    own_server.start()
    async with engine.connect() as connection:
        assert await connection.scalar(text("SELECT number FROM kept")) == 7


async def test_paused_server_answers_when_it_is_resumed(own_server: Server) -> None:
    async with engine_of(own_server.create_database("frozen")).connect() as connection:
        own_server.pause()
        answer = asyncio.create_task(connection.scalar(text("SELECT 7")))
        done, _ = await asyncio.wait([answer], timeout=0.2)
        assert not done
        own_server.resume()
        assert await answer == 7


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the parent's death signal")
@pytest.mark.parametrize("awaited", ["up", ""], ids=["running", "starting"])
def test_server_dies_with_a_killed_test_run(awaited: str, tmp_path: Path) -> None:
    test_run = [sys.executable, "-c", TEST_RUN, f"{tmp_path}/log", awaited]
    killed = subprocess.run(test_run, stdout=subprocess.PIPE, check=False)
    orphan, deadline = int(killed.stdout), time.monotonic() + 5
    while _is_alive(orphan) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(orphan)


def _is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
