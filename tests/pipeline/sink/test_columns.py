"""A DataFrame's columns are those of an enqueue request."""

import pytest
from pyspark.sql.types import StructType

from app.pipeline.errors import PipelineError
from app.pipeline.sink.columns import check_columns
from app.pipeline.sink.options import read_options


def columns(schema: str) -> StructType:
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return parsed


def check(schema: str, **options: str) -> None:
    check_columns(columns(schema), read_options({"url": "http://h", "queue": "mail", **options}))


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("payload string, prio int", {}, "unknown column 'prio'"),
        ("payload string, dedupe_key string", {}, "a job makes the dedupe keys itself"),
        ("type string", {}, "no column 'payload'"),
        ("payload struct<a: int>", {}, "'payload' must be string"),
        ("payload string, priority string", {}, "'priority' must be integer, not string"),
        ("payload string, priority double", {}, "'priority' must be integer, not double"),
        ("payload string, available_at date", {}, "'available_at' must be timestamp or string, not date"),
        ("payload string, available_at timestamp_ntz", {}, "must be timestamp or string"),
        ("payload string", {"key": "id"}, "no key column 'id'"),
        ("payload string, k double", {"key": "k"}, "the key column 'k' must be string or integer"),
        ("payload string, tenant_id string", {"tenant": "t"}, "cannot both be given"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(schema: str, options: dict[str, str], told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        check(schema, **options)


def test_the_queue_must_be_said() -> None:
    with pytest.raises(PipelineError, match="say the queue"):
        check_columns(columns("payload string"), read_options({"url": "http://h"}))


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("payload string", {}),
        ("payload binary, content_type string, timeout_seconds int", {}),
        ("payload string, payload_base64 binary, expires_at timestamp, available_at string", {}),
        ("payload string, dedupe_key string", {"key": "dedupe_key"}),
        ("payload string, id string", {"key": "id"}),
        ("payload string, number bigint", {"key": "number"}),
    ],
)
def test_columns_of_a_task_are_taken(schema: str, options: dict[str, str]) -> None:
    check(schema, **options)
