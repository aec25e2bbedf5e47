"""The data source `mq`: what the queue holds, and a way into it."""

from collections.abc import MutableMapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from app.pipeline.sink.writer import open_writer
from app.pipeline.source.garbage import spare_modules
from app.pipeline.source.options import table_of
from app.pipeline.source.reader import open_reader


class MqDataSource(DataSource):
    """`spark.read.format("mq")` reads the database, `df.write.format("mq")` enqueues through the HTTP API."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Spark asks a process of its own for the source, each time, which then looks for garbage while others read.
        spare_modules()

    @classmethod
    def name(cls) -> str:
        return "mq"

    def schema(self) -> StructType:
        return table_of(self.options).database_schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return open_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return open_writer(dict(self.options), schema, overwrite=overwrite)


def register(spark: SparkSession) -> None:
    """Makes the format `mq` known to the session."""
    spark.dataSource.register(MqDataSource)
