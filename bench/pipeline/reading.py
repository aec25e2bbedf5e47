"""Reading every task: the data source next to the same driver without Spark, on as many cores."""

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor

from app.pipeline.source.keys import KeyRange
from app.pipeline.source.reading import find_keys, read_batches
from app.pipeline.tables import TASKS
from bench.direct.filling import filling
from bench.pipeline.session import cores, session
from bench.pipeline.sizes import sizes_of
from bench.ratios import Claim
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage

WARMUPS = 25


def _prepare(stage: Stage) -> list[Contestant]:
    url, rows = stage.databases.create("postgresql"), sizes_of(stage.form).tasks
    asyncio.run(_fill(url, rows))
    pool = stage.stack.enter_context(ProcessPoolExecutor(cores()))
    # Both sides are warm: processes are there, and Java has compiled what it runs.
    for _ in range(WARMUPS):
        _read_directly(pool, url)
        _read_by_spark(url)
    return [
        Contestant("the driver alone", lambda: _read_directly(pool, url)),
        Contestant("the data source", lambda: _read_by_spark(url)),
    ]


async def _fill(url: str, rows: int) -> None:
    async with filling(url) as tables:
        await tables.add_ready(rows)
        await tables.settle()


def _read_directly(pool: ProcessPoolExecutor, url: str) -> Measured:
    started_at = time.monotonic()
    parts = find_keys(url, TASKS).split(cores())
    rows = sum(pool.map(_count_rows, [url] * len(parts), parts))
    return {"rows_per_second": rows / (time.monotonic() - started_at)}


def _count_rows(url: str, keys: KeyRange) -> int:
    return sum(batch.num_rows for batch in read_batches(url, TASKS, keys))


def _read_by_spark(url: str) -> Measured:
    started_at = time.monotonic()
    source = session().read.format("mq").option("url", url).option("table", TASKS.name).option("partitions", cores())
    # Counted, as by the driver alone. Spark takes every column: it does not tell Python's sources which ones it needs.
    read = source.load().count()
    return {"rows_per_second": read / (time.monotonic() - started_at)}


READING = Scenario(
    name="reading",
    title="Reading all tasks from PostgreSQL, every column",
    prepare=_prepare,
    claims=[
        Claim(
            "Reading through the data source against the same driver without Spark on as many cores",
            "reading", "the data source.rows_per_second", "the driver alone.rows_per_second", 0.8,
        ),
    ],
    shown=("rows_per_second",),
)  # fmt: skip
