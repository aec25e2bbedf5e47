"""What is said of columns to Spark is true of the rows."""

import pyarrow as pa
import pytest

from app.pipeline.errors import PipelineError
from app.pipeline.source.scan import Scan
from app.pipeline.tables import ATTEMPTS

COLUMNS = tuple(column for column in ATTEMPTS.columns if column.name in ("id", "reason"))


def scan(*required: str) -> Scan:
    return Scan(ATTEMPTS, COLUMNS, required=frozenset(required))


def test_required_columns_are_not_nullable() -> None:
    assert [field.nullable for field in scan("id").arrow_schema] == [False, True]
    assert [field.nullable for field in scan().arrow_schema] == [True, True]


def test_a_null_in_a_required_column_is_refused() -> None:
    batch = pa.record_batch([pa.array([1, None]), pa.array(["a", None])], names=["id", "reason"])
    assert scan().checked(batch) is batch
    with pytest.raises(PipelineError, match="the column id of attempts has a NULL"):
        scan("id").checked(batch)


def test_only_columns_that_are_never_null_are_required() -> None:
    assert {"id", "task_id", "success"} < ATTEMPTS.required
    assert not {"worker_id", "reason"} & ATTEMPTS.required
