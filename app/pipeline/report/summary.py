"""One pass over a frame for all that it is broken down by: everything, queue, type, tenant, bucket of time."""

from collections.abc import Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.pipeline.report.buckets import bucket

COLUMNS = ("queue", "type", "tenant", "hour")
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
# The rank is off by at most one in this many: p99 of a million values is one of those between 98.99 % and 99.01 %.
ACCURACY = 10_000


class By(Enum):
    """What a row of a summary is about, by Spark's number of the grouping: a bit for each column that is left out."""

    ALL = 0b1111
    QUEUE = 0b0111
    TYPE = 0b1011
    TENANT = 0b1101
    HOUR = 0b1110

    @property
    def column(self) -> str | None:
        return None if self is By.ALL else self.name.lower()


def summarise(frame: DataFrame, width_seconds: int, aggregates: Sequence[Column]) -> DataFrame:
    """The aggregates by `queue`, `type`, `tenant`, `hour` and over all; `by` holds the value of `By`.

    With cut labels and few buckets it has few rows, whatever the frame has.
    """
    groupings: list[list[str]] = [[], *([column] for column in COLUMNS)]
    timed = frame.withColumn("hour", bucket("finished_at", width_seconds))
    return timed.groupingSets(groupings, *COLUMNS).agg(F.grouping_id().cast("int").alias("by"), *aggregates)


def part(summary: pa.Table, by: By) -> pa.Table:
    """The rows of a collected summary that are about one thing, with its column alone, in its order."""
    kept = [] if by.column is None else [by.column]
    figures = [name for name in summary.column_names if name not in (*COLUMNS, "by")]
    rows = summary.filter(pc.field("by") == by.value).select([*kept, *figures])
    return rows.sort_by(by.column) if by.column else rows


def percentiles(value: Column, prefix: str) -> list[Column]:
    """`<prefix>_p50_seconds` and so on; NULLs are no values."""
    found = F.percentile_approx(value, list(PERCENTILES.values()), ACCURACY)
    return [found[place].alias(f"{prefix}_{name}_seconds") for place, name in enumerate(PERCENTILES)]


def counted(condition: Column) -> Column:
    """How many rows fulfil the condition."""
    return F.count_if(condition)


def total(value: Column) -> Column:
    """The sum, and 0 of nothing."""
    return F.coalesce(F.sum(value), F.lit(0))


def share(portion: Column, whole: Column) -> Column:
    """The portion of the whole, or NULL if there is no whole."""
    return F.try_divide(portion, whole)
