"""Arrow batches as Spark wants them: of the right types, and neither tiny nor huge."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

BATCH_BYTES = 1024 * 1024
BATCH_ROWS = 20_000


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same batch with the types of the schema; what has them already is not copied."""
    arrays = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: small ones are put together until there are enough bytes or rows."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield pa.concat_batches(waiting)
