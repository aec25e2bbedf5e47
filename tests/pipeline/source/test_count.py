"""A count takes every column of the frame out of the database and through the workers: the benchmark rests on it."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import StructType

from app.pipeline.datasource import MqDataSource
from app.pipeline.source.reader import MqReader
from app.pipeline.tables import HISTORY
from tests.pipeline.source.conftest import ROWS


def watched_source(directory: Path) -> type[DataSource]:
    """The data source; each batch that goes to Spark leaves a file with its number of rows and its columns."""

    class WatchedReader(MqReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            for batch in super().read(partition):
                told = " ".join([str(batch.num_rows), *batch.schema.names])
                (directory / uuid4().hex).write_text(told, encoding="utf-8")
                yield batch

    class WatchedSource(MqDataSource):
        @classmethod
        def name(cls) -> str:
            return "watched"

        def reader(self, schema: StructType) -> WatchedReader:
            return WatchedReader(self.options, schema)

    return WatchedSource


@pytest.mark.parametrize("schema", [None, "id bigint, payload binary"], ids=["whole", "narrowed"])
def test_count_is_sent_every_column_of_the_frame(
    mq: SparkSession, sqlite_url: str, tmp_path: Path, schema: str | None
) -> None:
    mq.dataSource.register(watched_source(tmp_path))
    reader = mq.read.format("watched").options(url=sqlite_url, table=HISTORY.name, partitions=2)
    frame = (reader.schema(schema) if schema else reader).load()

    assert frame.count() == len(ROWS[HISTORY.name])

    batches = [file.read_text(encoding="utf-8").split() for file in tmp_path.iterdir()]
    assert sum(int(rows) for rows, *_ in batches) == len(ROWS[HISTORY.name])
    for _, *columns in batches:
        assert columns == frame.columns
