"""The writing side of the data source: checks on the driver, deliveries on the executors, the account at the end."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from app.pipeline.errors import PipelineError
from app.pipeline.sink.client import Client
from app.pipeline.sink.columns import check_columns
from app.pipeline.sink.delivery import deliver
from app.pipeline.sink.errors import RowsRefused
from app.pipeline.sink.options import SinkOptions, read_options
from app.pipeline.sink.refused import Tally, check_path, total


def open_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> "MqWriter":
    """A writer whose options, columns and service were checked; raises `PipelineError` before anything is sent."""
    if overwrite:
        raise PipelineError("rows can only be added to a queue: write with mode('append')")
    options = read_options(given)
    check_columns(schema, options)
    check_service(options)
    return MqWriter(options)


def check_service(options: SinkOptions) -> None:
    """Raises `PipelineError` if the service takes no tasks from here, or refused rows would have no place."""
    if options.refused_path is not None:
        check_path(options.refused_path)
    client = Client(options)
    try:
        client.probe()
    finally:
        client.close()


class MqWriter(DataSourceArrowWriter):
    """What is sent cannot be taken back, so a partition that is tried again sends the same keys again."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return deliver(iterator, self._options, partition_id())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        tally = total(message for message in messages if isinstance(message, Tally))
        if tally.refused and self._options.on_refused == "fail":
            raise RowsRefused(tally.told())


def partition_id() -> int:
    """The partition that this executor works on."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
