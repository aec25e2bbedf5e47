"""A job that can be repeated: rows in parts that are the same in every run, sent part by part."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark import RDD, SparkContext
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from app.pipeline.errors import PipelineError
from app.pipeline.messages import SPARK_ERRORS, one_line
from app.pipeline.sink.columns import TENANT
from app.pipeline.sink.delivery import deliver
from app.pipeline.sink.identity import with_row_keys
from app.pipeline.sink.options import SinkOptions
from app.pipeline.sink.progress import Advance
from app.pipeline.sink.record import Measure, Record, Records
from app.pipeline.sink.refused import Tally
from app.pipeline.sink.writer import partition_id

# The column that says who a row is; its value decides the row's part.
IDENTITY = "_identity"
KEY = "_key"
PART_ROWS = 20_000
# With a rate a part is what a core may send in this time, so that one sees the job go on.
PART_SECONDS = 2.0
MAX_PARTS = 4096
# One runs and one waits, so that a core that is done with a part finds the next.
PARTS_PER_CORE = 2
GIVE_UP_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Rows:
    """Tasks to be enqueued, and their identities; `repeated`: equal identities are rows of their own."""

    frame: DataFrame
    repeated: bool


def measure(rows: Rows) -> Measure:
    """Counts the rows and computes all that is in them; raises `PipelineError` for what cannot be read."""
    content = F.xxhash64(*rows.frame.columns).cast("decimal(38,0)")
    try:
        counted = rows.frame.agg(F.count("*").alias("rows"), F.sum(content).cast("string").alias("checksum")).first()
    except SPARK_ERRORS as error:
        raise PipelineError(f"the rows cannot be read: {one_line(error)}") from error
    assert counted is not None
    return Measure(counted["rows"], counted["checksum"] or "")


def count_parts(rows: int, rate_per_second: float | None, parallelism: int) -> int:
    """Enough parts for all cores, each of a size that is sent in some seconds."""
    share = math.inf if rate_per_second is None else rate_per_second / parallelism
    size = max(1, int(min(PART_ROWS, share * PART_SECONDS)))
    return min(MAX_PARTS, max(parallelism, math.ceil(rows / size)))


def send(rows: Rows, options: SinkOptions, records: Records, record: Record, advance: Advance) -> Tally:
    """Sends what no earlier run has finished, and keeps the record after each part."""
    tallies = parted(rows, record).mapInArrow(_sender(options), "tally string").rdd
    context = rows.frame.sparkSession.sparkContext
    with ThreadPoolExecutor(PARTS_PER_CORE * context.defaultParallelism) as threads:
        begun = {threads.submit(_send_part, tallies, part): part for part in record.pending()}
        try:
            for ended in as_completed(begun):
                tally = ended.result()
                record = record.with_done([begun[ended]], tally)
                records.save(record)
                advance(tally.rows)
        finally:
            _give_up(context, begun)
    return record.tally


def parted(rows: Rows, record: Record) -> DataFrame:
    """The rows of the pending parts, each in the partition with its part's number, with their keys."""
    frame = rows.frame
    if record.done:
        frame = frame.filter(~part_of(IDENTITY, record.parts).isin(*record.done))
    frame = frame.repartition(record.parts, IDENTITY)
    keyed = with_row_keys(frame, KEY, IDENTITY) if rows.repeated else frame.withColumnRenamed(IDENTITY, KEY)
    # A batch is of one tenant.
    return keyed.sortWithinPartitions(TENANT) if TENANT in keyed.columns else keyed


def part_of(column: str, parts: int) -> Column:
    """Where Spark puts a row that is partitioned by the column."""
    return F.pmod(F.hash(column), F.lit(parts))


def _give_up(context: SparkContext, begun: Iterable[Future[Tally]]) -> None:
    """Ends every part that has not ended by itself: after one has failed, the others may have long to go."""
    for part in begun:
        part.cancel()
    while not all(part.done() for part in begun):
        # More than once: a thread may just be about to start its job.
        context.cancelAllJobs()
        time.sleep(GIVE_UP_SECONDS)


def _send_part(tallies: RDD[Row], part: int) -> Tally:
    # Spark makes no partitions at all where it finds no rows.
    if part >= tallies.getNumPartitions():
        return Tally()
    [text] = tallies.context.runJob(tallies, lambda partition: [row.tally for row in partition], [part])
    return msgspec.json.decode(text, type=Tally)


def _sender(options: SinkOptions) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def send_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = deliver(batches, options, partition_id())
        yield pa.record_batch([pa.array([msgspec.json.encode(tally).decode()])], names=["tally"])

    return send_part
