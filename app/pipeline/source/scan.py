"""What is read of a table: some columns of the rows that meet some conditions."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from app.pipeline.errors import PipelineError
from app.pipeline.source.comparisons import Comparison
from app.pipeline.source.keys import KeyRange
from app.pipeline.tables import ARROW_TYPES, Column, Table


@dataclass(frozen=True, slots=True)
class Scan:
    """Columns and conditions, the same for every range of keys."""

    table: Table
    columns: tuple[Column, ...]
    comparisons: tuple[Comparison, ...] = ()
    # Columns of which Spark was told that they are never NULL.
    required: frozenset[str] = frozenset()

    @property
    def arrow_schema(self) -> pa.Schema:
        """What the batches look like."""
        return pa.schema(
            [
                pa.field(column.name, ARROW_TYPES[column.kind], column.name not in self.required)
                for column in self.columns
            ]
        )

    def checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch; raises `PipelineError` for a NULL where Spark does not look for one."""
        for name in self.required:
            if batch.column(name).null_count:
                raise PipelineError(f"the column {name} of {self.table.name} has a NULL, which the schema rules out")
        return batch

    def statement(self, keys: KeyRange, render: Callable[[Comparison], str]) -> str:
        """The SELECT over a range of keys, the conditions written as the dialect does."""
        names = ", ".join(column.name for column in self.columns)
        conditions = [f"{self.table.key} BETWEEN {keys.first:d} AND {keys.last:d}"]
        if self.table.condition:
            conditions.append(self.table.condition)
        conditions += [render(comparison) for comparison in self.comparisons]
        return f"SELECT {names} FROM {self.table.relation} WHERE {' AND '.join(conditions)}"
