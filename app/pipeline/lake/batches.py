"""Writing a batch: rows to files, read back and compared, then the manifest."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from app.pipeline.errors import PipelineStopped
from app.pipeline.lake.lake import KEPT, Lake
from app.pipeline.lake.manifests import Manifest, Part
from app.pipeline.tables import Table

HALF = 2**32
OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Summary:
    """What two sets of rows must have in common to be the same."""

    rows: int
    digest: str
    low: int
    high: int


def ignore_step(step: str) -> None:
    """Nobody wants to know."""


def commit_batch(lake: Lake, frames: Mapping[Table, DataFrame], cut_off: datetime | None = None) -> Manifest | None:
    """Writes rows of tables as one batch and commits it; None, and nothing in the lake, if there are no rows."""
    manifest = prepare_batch(lake, frames, cut_off)
    if manifest is not None:
        lake.commit(manifest)
    return manifest


def prepare_batch(
    lake: Lake, frames: Mapping[Table, DataFrame], cut_off: datetime | None = None, on_step: OnStep = ignore_step
) -> Manifest | None:
    """Writes rows to the files of a new batch and compares; what is left to do is to commit it."""
    batch = new_batch_id()
    on_step("writing")
    written = {table: write_rows(lake, batch, table, frame) for table, frame in frames.items()}
    on_step("written")
    parts = {table.name: read_back(lake, batch, table, summary) for table, summary in written.items() if summary.rows}
    on_step("verified")
    if parts:
        return Manifest(batch, datetime.now(UTC), parts, cut_off)
    lake.delete_batch(batch)
    return None


def new_batch_id() -> str:
    """Later ones sort behind earlier ones; no two are the same."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}"


def write_rows(lake: Lake, batch: str, table: Table, frame: DataFrame) -> Summary:
    """Writes rows to files of a batch, and tells what they were on their way."""
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    observation = Observation()
    # The date is added before the rows are looked at: after it they would be copied once more.
    dated = frame.to(table.spark_schema).withColumn("date", F.to_date(KEPT[table.name]))
    observed = dated.observe(observation, *_measures(table))
    observed.write.partitionBy("date").option("compression", "zstd").parquet(
        f"{lake.files.root}/{_directory(batch, table)}"
    )
    return _summary(observation.get)


def read_back(lake: Lake, batch: str, table: Table, expected: Summary) -> Part:
    """Makes the files of a batch durable, and reads them to see that they hold what was meant."""
    files = tuple(lake.files.walk(_directory(batch, table)))
    lake.files.sync([file.path for file in files])
    part = Part(expected.rows, expected.digest, expected.low, expected.high, files)
    found = summarise(lake.read_files(table, [part]), table)
    if found != expected:
        raise PipelineStopped(
            f"The files of batch {batch} do not hold what was written: {found.rows} rows of {expected.rows} in"
            f" {table.name}. Nothing was taken out of the database."
        )
    return replace(part, repeated=_count_repeated(lake, table, part))


def _count_repeated(lake: Lake, table: Table, part: Part) -> int:
    """How many rows are in the lake already, as happens when a database was restored from an old copy."""
    others = [other for manifest in lake.manifests() if (other := manifest.parts.get(table.name))]
    overlapping = [other for other in others if part.overlaps(other)]
    if not overlapping:
        return 0
    key = [table.key, KEPT[table.name]]
    known = lake.read_files(table, overlapping).where(F.col(table.key).between(part.low, part.high)).select(key)
    return lake.read_files(table, [part]).select(key).join(known, key, "left_semi").count()


def summarise(frame: DataFrame, table: Table) -> Summary:
    """Counts and digests rows, in one pass without a shuffle."""
    row = frame.agg(*_measures(table)).first()
    assert row is not None
    return _summary(row.asDict())


def _measures(table: Table) -> list[Column]:
    # Both halves of the hashes are summed by themselves: neither sum can overflow.
    names = [column.name for column in table.columns]
    # A hash skips what is NULL, so which columns are is hashed too.
    nulls = [F.col(column.name).isNull() for column in table.columns if column.nullable]
    hashed = F.xxhash64(*names, *nulls)
    return [
        F.count("*").alias("rows"),
        F.sum(F.shiftright(hashed, 32)).alias("upper"),
        F.sum(hashed.bitwiseAND(F.lit(HALF - 1))).alias("lower"),
        F.min(table.key).alias("low"),
        F.max(table.key).alias("high"),
    ]


def _summary(measured: Mapping[str, int | None]) -> Summary:
    rows, upper, lower, low, high = (measured[name] or 0 for name in ("rows", "upper", "lower", "low", "high"))
    return Summary(rows, f"{upper * HALF + lower:x}", low, high)


def _directory(batch: str, table: Table) -> str:
    return f"{table.name}/batch={batch}"
