"""What moves to the lake, and what stays."""

import asyncio
import logging
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.domain.errors import TaskNotFound
from app.pipeline.archive.archive import archive, rehearse
from app.pipeline.errors import PipelineError
from app.pipeline.lake import open_lake
from app.pipeline.tables import ATTEMPTS, HISTORY
from tests.conformance.steps import settled
from tests.pipeline.archive.ledger import Ledger, check_nothing_lost, lake_rows
from tests.pipeline.archive.requests import OLD, RECENT, make_request


class Stopped(Exception):
    """The run ended here."""


async def test_old_rows_move_and_the_rest_stays(spark: SparkSession, ledger: Ledger, tmp_path: Path) -> None:
    store = ledger.store
    archived = await ledger.finish_many(30, OLD)
    kept = await ledger.finish_many(5, RECENT)
    dead = await ledger.bury_many(4, OLD)
    live = await retried(ledger, "live")
    late = await retried(ledger, "late")
    settled(await store.ack(await store.reserve_one(RECENT, queues=["late"]), RECENT))
    request = make_request(tmp_path, ledger.url, dead_letters=False, batch_rows=20)

    assert await rehearse(spark, request) == {"history": 30, "attempts": 30}
    assert os.listdir(tmp_path) == []
    assert await archive(spark, request) == {"history": 30, "attempts": 30}
    await check_nothing_lost(spark, ledger, request.lake_url)
    with pytest.raises(TaskNotFound):
        await store.get(archived[0], RECENT)
    for task_id, attempts in ((kept[0], 1), (dead[0], 1), (live, 1), (late, 2)):
        assert len(await store.attempts(task_id, RECENT)) == attempts

    everything = make_request(tmp_path, ledger.url, dead_letters=True)
    assert await rehearse(spark, everything) == {"history": 0, "dlq": 4, "attempts": 4}
    assert await archive(spark, everything) == {"history": 0, "dlq": 4, "attempts": 4}
    await check_nothing_lost(spark, ledger, request.lake_url)
    batches = len(open_lake(spark, request.lake_url).manifests())
    assert await archive(spark, everything) == {"history": 0, "dlq": 0, "attempts": 0}
    assert len(open_lake(spark, request.lake_url).manifests()) == batches


async def test_what_changed_or_went_meanwhile_is_left_alone(
    spark: SparkSession, ledger: Ledger, tmp_path: Path
) -> None:
    changed, dropped, *_ = await ledger.finish_many(6, OLD)
    request = make_request(tmp_path, ledger.url)

    def stop(step: str) -> None:
        if step == "committed":
            raise Stopped

    with pytest.raises(Stopped):
        await archive(spark, request, on_step=stop)
    assert len(await ledger.rows(HISTORY)) == 6
    recent = {"postgresql": "now()", "mysql": "utc_timestamp(6)"}.get(
        ledger.dialect.name, "strftime('%s', 'now') * 1000000"
    )
    await ledger.run(f"UPDATE mq_task_history SET finished_at = {recent} WHERE task_id = '{changed}'")
    await ledger.run(f"DELETE FROM mq_task_history WHERE task_id = '{dropped}'")

    assert (await archive(spark, request))["history"] == 0
    assert [row[2] for row in await ledger.rows(HISTORY)] == [changed]
    assert lake_rows(spark, request.lake_url, HISTORY) == await ledger.kept(HISTORY)
    assert open_lake(spark, request.lake_url).unpruned() == []


async def test_two_archivers_at_once(spark: SparkSession, ledger: Ledger, tmp_path: Path) -> None:
    await ledger.finish_many(10, OLD)
    request = make_request(tmp_path, ledger.url)
    outcomes = await asyncio.gather(archive(spark, request), archive(spark, request), return_exceptions=True)
    [refused] = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert isinstance(refused, PipelineError)
    assert "Another archiver" in str(refused)
    await check_nothing_lost(spark, ledger, request.lake_url)
    assert len(lake_rows(spark, request.lake_url, ATTEMPTS)) == 10


async def test_queues_that_keep_too_little_are_warned_about(
    spark: SparkSession, ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for queue, days in (("short", "0"), ("same", "7"), ("long", "8"), ("all", "NULL")):
        await ledger.finish_many(1, RECENT, queue)
        await ledger.run(f"UPDATE mq_queues SET history_days = {days}, dlq_days = {days} WHERE name = '{queue}'")
    with caplog.at_level(logging.WARNING, "app.pipeline.archive"):
        await rehearse(spark, make_request(tmp_path, ledger.url))
    told = [(record.args or ())[0] for record in caplog.records if isinstance(record.args, tuple)]
    assert told == ["same", "short"] * 2


async def retried(ledger: Ledger, queue: str) -> str:
    """A task that was tried once, long ago, and is still to be done."""
    leased = await ledger.store.lease(now=OLD, queue=queue)
    settled(await ledger.store.nack(leased, OLD, delay_seconds=0))
    return leased.task.id
