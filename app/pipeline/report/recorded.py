"""What is recorded: the lake's tables, and those of a live database, as one."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from app.pipeline.advice.advise import Recorded
from app.pipeline.datasource import register
from app.pipeline.lake import open_lake
from app.pipeline.report.frames import Period, united, within
from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, TASKS, Table

ENDED_AT = {HISTORY: "finished_at", ATTEMPTS: "finished_at", DLQ: "failed_at"}


@contextmanager
def read_recorded(spark: SparkSession, lake_url: str, live_url: str | None, period: Period) -> Iterator[Recorded]:
    """All that ended in the period, each row once, and what is live now; to be used before the context ends."""
    open_lake(spark, lake_url)
    with _kept(_live_frames(spark, live_url, period)) as live:
        # Only now: what an archiver moved while the database was read is in both, and counts once.
        lake = open_lake(spark, lake_url)
        frames = {
            table: united(within(lake.read(table), period, ended_at), live.get(table), ended_at)
            for table, ended_at in ENDED_AT.items()
        }
        yield Recorded(frames[HISTORY], frames[ATTEMPTS], frames[DLQ], live.get(TASKS))


def _live_frames(spark: SparkSession, url: str | None, period: Period) -> dict[Table, DataFrame]:
    if url is None:
        return {}
    register(spark)
    ended = {table: _read(spark, url, table, conditions(period, column)) for table, column in ENDED_AT.items()}
    return {**ended, TASKS: _read(spark, url, TASKS, [])}


def conditions(period: Period, ended_at: str) -> list[list[str]]:
    """What the database shall decide itself, as the data source takes it; see `within`."""
    bounds = ((">=", period.since), ("<", period.until))
    return [[ended_at, operator, bound.isoformat()] for operator, bound in bounds if bound is not None]


def _read(spark: SparkSession, url: str, table: Table, where: list[list[str]]) -> DataFrame:
    options = {"url": url, "table": table.name, **({"where": json.dumps(where)} if where else {})}
    return spark.read.format("mq").options(**options).load()


@contextmanager
def _kept(frames: Mapping[Table, DataFrame]) -> Iterator[Mapping[Table, DataFrame]]:
    """The same frames, read now and once: a live database is asked no second time. On disk, so that memory is flat."""
    kept = {table: frame.persist(StorageLevel.DISK_ONLY) for table, frame in frames.items()}
    try:
        for frame in kept.values():
            frame.count()
        yield kept
    finally:
        for frame in kept.values():
            frame.unpersist()
