"""The reader that Spark asks: it plans on the driver, and reads ranges of keys in the workers.

Spark 4.3 keeps what a scan has pushed down with the loaded frame, and gives it to every later scan of the same frame
that has no filters, and to all scans of it in one query: rows are lost without a word. So Spark's filters go to the
database only where the caller says that each loaded frame is used once; conditions in the option `where` always do.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from app.pipeline.source.comparisons import NotExpressible
from app.pipeline.source.factory import find_database
from app.pipeline.source.filters import to_comparison
from app.pipeline.source.garbage import spare_modules
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.options import check_names, columns_of, partitions_of, pushdown_of, table_of, url_of
from app.pipeline.source.scan import Scan
from app.pipeline.source.where import read_where


@dataclass
class KeyPartition(InputPartition):
    """One range of keys."""

    keys: KeyRange


class MqReader(DataSourceReader):
    """Reads one table. Raises `PipelineError` at once for options or a database that cannot be read."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        check_names(options)
        self._table = table_of(options)
        self._columns = columns_of(self._table, schema)
        self._required = frozenset(field.name for field in schema.fields if not field.nullable)
        self._partitions = partitions_of(options)
        self._comparisons = read_where(options.get("where", "[]"), self._table)
        self._database = find_database(url_of(options))
        self._keys = self._database.checked_key_range(self._table)
        spare_modules()

    def partitions(self) -> list[InputPartition]:
        """Ranges that cover the keys that there were at first; what came later is not read."""
        keys = self._keys.narrowed(self._table.key, self._comparisons)
        return [KeyPartition(part) for part in keys.split(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        assert isinstance(partition, KeyPartition)
        spare_modules()
        scan = Scan(self._table, self._columns, tuple(self._comparisons), self._required)
        return map(scan.checked, self._database.read(scan, partition.keys))


class PushdownReader(MqReader):
    """A reader that takes Spark's filters; for a frame that is used once."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep what the database decides exactly as Spark would, and give back the rest."""
        for condition in filters:
            try:
                self._comparisons.append(to_comparison(condition, self._columns))
            except NotExpressible:
                yield condition


def open_reader(options: Mapping[str, str], schema: StructType) -> MqReader:
    """The reader that the options ask for."""
    return (PushdownReader if pushdown_of(options) else MqReader)(options, schema)
