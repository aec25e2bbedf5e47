"""A job of the command line from its start to its account: looked at, shown, sent, and told about."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Row, SparkSession

from app.pipeline.errors import PipelineError
from app.pipeline.messages import SPARK_ERRORS, one_line
from app.pipeline.session import open_session
from app.pipeline.sink.columns import check_columns
from app.pipeline.sink.job import IDENTITY, KEY, Rows, count_parts, measure, send
from app.pipeline.sink.options import SinkOptions, read_options
from app.pipeline.sink.progress import show_progress
from app.pipeline.sink.record import Measure, Records, default_folder, purpose_of
from app.pipeline.sink.refused import Tally
from app.pipeline.sink.writer import check_service

SAMPLES = 5
SHOWN_CHARACTERS = 60
FAILED = 1


@dataclass(frozen=True, slots=True)
class Sending:
    """What the command line said about sending."""

    given: Mapping[str, str]
    purpose: Mapping[str, object]
    folder: Path | None
    dry_run: bool

    def options(self, parallelism: int = 1) -> SinkOptions:
        return read_options({**self.given, "key": KEY, "parallelism": str(parallelism)})


def open_quietly(command: str, master: str | None) -> SparkSession:
    """A session that leaves it to the command to tell what went wrong, in one line."""
    spark = open_session(command, master)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def check_sending(sending: Sending) -> None:
    """Raises `PipelineError` before Spark is started, for options that are wrong or a service that is not there."""
    options = sending.options()
    if not sending.dry_run:
        check_service(options)


def run_sending(rows: Rows, sending: Sending) -> int:
    """Shows the rows, or sends those that are not sent yet; returns the exit code."""
    spark = rows.frame.sparkSession
    parallelism = spark.sparkContext.defaultParallelism
    options = sending.options(parallelism)
    check_columns(rows.frame.withColumnRenamed(IDENTITY, KEY).schema, options)
    measured = measure(rows)
    if sending.dry_run:
        _show(rows, measured)
        return 0
    _check_window(options, measured)
    return _send(rows, options, sending, measured)


def _send(rows: Rows, options: SinkOptions, sending: Sending, measured: Measure) -> int:
    records = Records(sending.folder or default_folder())
    records.prepare()
    parallelism = options.parallelism or 1
    parts = count_parts(measured.rows, options.rate_per_second, parallelism)
    record = records.begin(options.job, purpose_of(sending.purpose), measured, parts)
    if not record.pending():
        return _account(record.tally, options, "was finished before, and nothing is sent now")
    # Fewer parts than cores share the rate among fewer.
    options = replace(options, parallelism=min(parallelism, len(record.pending())))
    print(f"job {options.job}: {measured.rows} rows, {record.tally.rows} of them sent before", flush=True)
    try:
        with show_progress(options.job, measured.rows, record.tally.rows) as advance:
            tally = send(rows, options, records, record, advance)
    except SPARK_ERRORS as error:
        print(f"leasemq: job {options.job} stopped: {one_line(error)}; go on with --job {options.job}", file=sys.stderr)
        return FAILED
    return _account(tally, options, "is finished")


def _account(tally: Tally, options: SinkOptions, state: str) -> int:
    enqueued = tally.rows - tally.existed - tally.refused
    counts = f"{enqueued} enqueued, {tally.existed} were there already, {tally.refused} refused"
    print(f"job {options.job} {state}: {counts}")
    if tally.refused and options.on_refused == "fail":
        print(f"leasemq: {tally.told()}", file=sys.stderr)
        return FAILED
    return 0


def _check_window(options: SinkOptions, measured: Measure) -> None:
    if options.rate_per_second is None:
        return
    seconds = measured.rows / options.rate_per_second
    if seconds > options.dedupe_seconds:
        raise PipelineError(
            f"at this rate the job takes {seconds:.0f} seconds, longer than sent rows are remembered:"
            " give a longer --dedupe-window"
        )


def _show(rows: Rows, measured: Measure) -> None:
    print(f"{measured.rows} tasks would be enqueued")
    for row in rows.frame.drop(IDENTITY).limit(SAMPLES).collect():
        print(f"  {_sample(row)}")


def _sample(row: Row) -> str:
    return "  ".join(f"{name}={_short(value)}" for name, value in row.asDict().items() if value is not None)


def _short(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
