"""Nothing is enqueued twice: replies are lost, a Spark task fails and is run again, and workers drain the queue."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.pipeline.sink.flaky import FlakyProxy
from tests.pipeline.sink.queue import Drain, Queue
from tests.service import Service

ROWS = 1200
# Every payload is there three times: equal rows are tasks of their own.
TIMES = 3
BATCH = 50
MARK_SECONDS = 60.0
FILLING = "x" * 2000
ARROW_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture
def draining_service(database_url: str, tmp_path: Path) -> Iterator[Service]:
    with Service(database_url, tmp_path / "log") as service:
        yield service


def failing_at_first(mark: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rows of a partition; its first try breaks off when some are enqueued, and the next has another order."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        rows = pa.Table.from_batches(batches)
        if context.attemptNumber() == 0:
            yield from rows.slice(0, rows.num_rows - 1).to_batches(max_chunksize=BATCH)
            give_up_at = time.monotonic() + MARK_SECONDS
            while not mark.exists() and time.monotonic() < give_up_at:
                time.sleep(0.05)
            raise RuntimeError("the executor is lost")
        yield from rows.take(list(reversed(range(rows.num_rows)))).to_batches(max_chunksize=BATCH)

    return rows_of


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> Iterator[DataFrame]:
    """Rows that go to the sink few at a time: they are large enough not to wait in a buffer."""
    spark.conf.set(ARROW_BATCH, BATCH)
    payload = F.expr(f"concat('[', id div {TIMES}, ',\"{FILLING}\"]') as payload")
    rows = spark.range(ROWS, numPartitions=2).select(F.col("id").alias("number"), payload)
    yield rows.mapInArrow(failing_at_first(tmp_path / "mark"), rows.schema)
    spark.conf.unset(ARROW_BATCH)


def check_once(rows: DataFrame, service: Service, mark: Path, **options: str) -> None:
    """Writes through the proxy while a worker drains, and compares what the worker got with what is in the frame."""
    queue = Queue(service.url, f"q-{uuid4().hex}")
    with FlakyProxy(service.port, mark) as proxy, Drain(queue) as drain:
        writer = rows.write.format("mq").mode("append").option("url", proxy.url).option("queue", queue.name)
        writer.options(batch_rows="40", dedupe_seconds="3600", **options).save()
    queue.close()
    assert drain.payloads == Counter({str([number, FILLING]): TIMES for number in range(ROWS // TIMES)})
    assert min(proxy.fates[fate] for fate in ("drop", "unavailable", "shed")) >= 4
    # The first try was not for nothing: rows that it had enqueued were sent again.
    assert proxy.repeated() > 0


def test_rows_without_a_key_are_enqueued_once(frame: DataFrame, draining_service: Service, tmp_path: Path) -> None:
    check_once(frame.drop("number"), draining_service, tmp_path / "mark")


def test_rows_with_a_key_are_enqueued_once(frame: DataFrame, service: Service, tmp_path: Path) -> None:
    check_once(frame, service, tmp_path / "mark", key="number")
