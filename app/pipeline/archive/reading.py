"""The rows that are archived, as a DataFrame that is read from the database when it is written to the lake."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from app.pipeline.archive.windows import Window
from app.pipeline.lake.lake import KEPT
from app.pipeline.source.comparisons import Operator
from app.pipeline.source.garbage import spare_modules
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.reading import compare, read_batches
from app.pipeline.tables import ATTEMPTS, Table

# An attempt goes when its task is nowhere any more, so that the attempts of a task that is there stay whole. Each part
# looks at one entry of the index on (tenant_id, id) or (tenant_id, task_id), unless the planner finds a join cheaper.
# All of it is one statement, which sees a task that moves meanwhile either where it was or where it is.
OF_NO_TASK = (
    "NOT EXISTS (SELECT 1 FROM mq_tasks AS t"
    " WHERE t.tenant_id = mq_task_attempts.tenant_id AND t.id = mq_task_attempts.task_id)"
    " AND NOT EXISTS (SELECT 1 FROM mq_task_history AS f"
    " WHERE f.tenant_id = mq_task_attempts.tenant_id AND f.task_id = mq_task_attempts.task_id)"
    " AND NOT EXISTS (SELECT 1 FROM mq_task_dlq AS d"
    " WHERE d.tenant_id = mq_task_attempts.tenant_id AND d.task_id = mq_task_attempts.task_id)"
)

# What a transaction reads at most, about.
MOST_ROWS = 250_000


def read_rows(spark: SparkSession, database_url: str, table: Table, window: Window, cut_off: datetime) -> DataFrame:
    """The rows of a window that are old enough; each part of it is read in a short transaction of its own."""
    scanned = replace(table, condition=OF_NO_TASK) if table is ATTEMPTS else table
    old = compare(table, KEPT[table.name], Operator.LESS, cut_off)
    ranges = KeyRange(window.low + 1, window.high).split(_parts(spark, window))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_modules()
        for batch in batches:
            for position in batch.column(0).to_pylist():
                yield from read_batches(database_url, scanned, ranges[position], where=[old], required=table.required)

    return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read, table.database_schema)


def _parts(spark: SparkSession, window: Window) -> int:
    """One for each core, or more where a part would take long."""
    return max(spark.sparkContext.defaultParallelism, -(-window.rows // MOST_ROWS))
