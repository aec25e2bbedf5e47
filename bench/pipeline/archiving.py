"""Archiving, verified and pruned: next to a plain COPY and DELETE, and at a quarter of the rows."""

import asyncio
import tempfile
import time
from asyncio.subprocess import DEVNULL
from datetime import timedelta
from functools import partial
from pathlib import Path

import asyncpg

from app.pipeline.archive.archive import ArchiveRequest, archive
from app.pipeline.archive.progress import LogLines
from bench.direct.filling import filling
from bench.pipeline.session import driver_peak_mib, session
from bench.pipeline.sizes import sizes_of
from bench.ratios import Claim
from bench.scenario import CannotMeasureError, Contestant, Measured, Scenario
from bench.stage import Stage
from tests.service import COMMAND

AGE = "2 days"
CUT_OFF = timedelta(days=1)
GROWTH = 4
WARMUPS = 2
# One attempt of each of so many tasks that are nowhere any more.
ATTEMPTS = f"""
INSERT INTO mq_task_attempts
    (tenant_id, task_id, queue, type, attempt_no, worker_id, started_at, finished_at, success, reason)
SELECT 'default', uuidv7()::text, 'bench', 'mail', 1, 'worker-' || i % 100, now() - interval '{AGE}',
    now() - interval '{AGE}' + i % 100 * interval '1 millisecond', i % 50 <> 0, CASE WHEN i % 50 = 0 THEN 'timeout' END
FROM generate_series(1, $1) AS i
"""


def _prepare_archiving(stage: Stage) -> list[Contestant]:
    rows = sizes_of(stage.form).history
    # As a session that has archived before: Java has compiled what it runs.
    for _ in range(WARMUPS):
        asyncio.run(_fill_and_archive(stage, rows))
    return [
        Contestant("COPY and DELETE", lambda: asyncio.run(_copy_and_delete(stage, rows))),
        Contestant("the archive", lambda: asyncio.run(_fill_and_archive(stage, rows))),
        Contestant("the archive as a command", lambda: asyncio.run(_fill_and_command(stage, rows))),
    ]


def _prepare_growth(stage: Stage) -> list[Contestant]:
    rows = sizes_of(stage.form).attempts
    _archive_attempts(stage, rows // 100)
    return [
        Contestant("a quarter of the attempts", partial(_archive_attempts, stage, rows // GROWTH)),
        Contestant("all attempts", partial(_archive_attempts, stage, rows)),
    ]


async def _copy_and_delete(stage: Stage, rows: int) -> Measured:
    url = await _filled(stage, rows)
    connection = await asyncpg.connect(url)
    try:
        started_at = time.monotonic()
        with tempfile.TemporaryFile(dir=stage.directory) as output:
            await connection.copy_from_table("mq_task_history", output=output, timeout=600)
        await connection.execute("DELETE FROM mq_task_history", timeout=600)
        return {"seconds": time.monotonic() - started_at}
    finally:
        await connection.close()


async def _fill_and_archive(stage: Stage, rows: int) -> Measured:
    url = await _filled(stage, rows)
    started_at = time.monotonic()
    await _archive(stage, url, "history", rows)
    return {"seconds": time.monotonic() - started_at}


async def _fill_and_command(stage: Stage, rows: int) -> Measured:
    """The whole command: Python, Java and a session are started, and nothing is compiled yet."""
    url = await _filled(stage, rows)
    lake = tempfile.mkdtemp(dir=stage.directory)
    command = [str(COMMAND), "pipeline", "archive", "--lake", lake, "--older-than", "1d", "--database-url", url]
    started_at = time.monotonic()
    process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
    if await process.wait() != 0:
        raise CannotMeasureError("the command failed")
    return {"seconds": time.monotonic() - started_at}


def _archive_attempts(stage: Stage, rows: int) -> Measured:
    url = stage.databases.create("postgresql")
    asyncio.run(_fill_attempts(url, rows))
    started_at = time.monotonic()
    peak = driver_peak_mib(lambda: asyncio.run(_archive(stage, url, "attempts", rows)))
    return {"seconds": time.monotonic() - started_at, "driver_mib": peak}


async def _archive(stage: Stage, url: str, table: str, rows: int) -> None:
    lake = Path(tempfile.mkdtemp(dir=stage.directory))
    moved = await archive(session(), ArchiveRequest(url, str(lake), CUT_OFF), LogLines())
    if moved[table] != rows:
        raise CannotMeasureError(f"{moved[table]} of {rows} rows were archived")


async def _filled(stage: Stage, rows: int) -> str:
    url = stage.databases.create("postgresql")
    async with filling(url) as tables:
        await tables.add_history(rows, age=AGE)
        await tables.settle()
    return url


async def _fill_attempts(url: str, rows: int) -> None:
    async with filling(url) as tables:
        await tables.execute(ATTEMPTS, rows)
        await tables.settle()


ARCHIVING = Scenario(
    name="archiving",
    title="Archiving finished tasks of PostgreSQL, verified by reading back and pruned",
    prepare=_prepare_archiving,
    claims=[
        Claim(
            "The archive, verify and prune included, against COPY and DELETE: time",
            "archiving", "the archive.seconds", "COPY and DELETE.seconds", 3.0, at_least=False,
        ),
        Claim(
            "The same as a command, with the start of Java and Spark: time",
            "archiving", "the archive as a command.seconds", "COPY and DELETE.seconds", 3.0, at_least=False,
        ),
    ],
    shown=("seconds",),
)  # fmt: skip
GROWING = Scenario(
    name="growing",
    title="Archiving four times the attempts",
    prepare=_prepare_growth,
    claims=[
        Claim(
            "Four times the rows, beyond the start of the session: time",
            "growing", "all attempts.seconds", "a quarter of the attempts.seconds", 4.4, at_least=False,
        ),
        Claim(
            "Memory of the driver with all attempts, the local executor in it",
            "growing", "all attempts.driver_mib", None, 1024.0, at_least=False, unit=" MiB",
        ),
    ],
    rounds=1,
    shown=("seconds", "driver_mib"),
)  # fmt: skip
