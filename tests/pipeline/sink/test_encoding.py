"""Rows as JSON: every value is one value, and nothing in it can be read as another field."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from app.pipeline.sink.encoding import EncodedRow, RefusedRow, RowEncoder, is_json
from app.pipeline.sink.options import SinkOptions


def encode(columns: dict[str, pa.Array], **options: Any) -> list[EncodedRow | RefusedRow]:
    encoder = RowEncoder(SinkOptions(**{"url": "http://h", "job": "j", "queue": "mail", **options}), partition=3)
    return list(encoder.encode(pa.record_batch(columns)))


def body(row: EncodedRow | RefusedRow) -> dict[str, Any]:
    assert isinstance(row, EncodedRow)
    sent: dict[str, Any] = json.loads(row.body)
    return sent


def test_columns_become_fields() -> None:
    due = datetime(2030, 1, 2, 3, 4, 5, 678901, UTC)
    [row] = encode(
        {
            "payload": pa.array(['{"n": 1.10}']), "type": pa.array(['a"b']), "meta": pa.array(['{"a":1}']),
            "priority": pa.array([7], pa.int32()), "delay_seconds": pa.array([None], pa.float64()),
            "available_at": pa.array([due], pa.timestamp("us", "Europe/Berlin")),
            "timeout_seconds": pa.array([1.5]), "number": pa.array([42]), "tenant_id": pa.array(["acme"]),
        },
        key="number", dedupe_seconds=60.0,
    )  # fmt: skip
    assert isinstance(row, EncodedRow)
    assert (row.key, row.tenant) == ("42", "acme")
    # As it was written, to the digit.
    assert b'"payload":{"n": 1.10}' in row.body
    assert body(row) == {
        "dedupe_key": "j:42", "dedupe_seconds": 60.0, "queue": "mail", "payload": {"n": 1.1}, "type": 'a"b',
        "meta": {"a": 1}, "priority": 7, "available_at": "2030-01-02T03:04:05.678901Z", "timeout_seconds": 1.5,
    }  # fmt: skip


def test_bytes_are_base64() -> None:
    [row, other] = encode({"payload": pa.array([None, "1"]), "payload_base64": pa.array([b"\x00\xff", None])})
    assert body(row)["payload_base64"] == "AP8="
    assert "payload" not in body(row)
    assert body(other)["payload"] == 1
    assert body(encode({"payload": pa.array([b"\x00\xff"])})[0])["payload_base64"] == "AP8="


def test_a_row_without_a_queue_takes_the_jobs() -> None:
    rows = encode({"payload": pa.array(["1", "2"]), "queue": pa.array(["own", None])})
    assert [body(row)["queue"] for row in rows] == ["own", "mail"]


@pytest.mark.parametrize("text", ['1,"priority":99', '1}],"x":[{', "{", "", "NaN", "hello", "'a'"])
def test_what_is_not_one_json_value_is_refused(text: str) -> None:
    [row, good] = encode({"payload": pa.array([text, "2"])})
    assert isinstance(row, RefusedRow)
    assert row.reason == "payload is not JSON"
    assert json.loads(row.body) == {"queue": "mail", "payload": text}
    assert isinstance(good, EncodedRow)


def test_a_refused_value_does_not_change_who_another_row_is() -> None:
    [_, after] = encode({"payload": pa.array(["{", '"{"'])})
    [alone] = encode({"payload": pa.array(['"{"'])})
    assert after == alone


@pytest.mark.parametrize("text", ["null", " 1 ", '"\\ud800"', "1e999", "1" * 5000, '"\\u0000"', '{"a":1,"a":2}'])
def test_json_that_the_service_takes_is_taken(text: str) -> None:
    assert is_json(text.encode())


def test_rows_that_cannot_be_told_apart_or_written_are_refused() -> None:
    rows = encode(
        {
            "payload": pa.array(["1", "1", "1"]),
            "number": pa.array([None, 2, 3]),
            "timeout_seconds": pa.array([1.0, float("nan"), 1.0]),
            "tenant_id": pa.array(["a", "a", "a\r\nX: y"]),
        },
        key="number",
    )
    reasons = [row.reason for row in rows if isinstance(row, RefusedRow)]
    assert reasons == ["the key is NULL", "timeout_seconds is not finite", "tenant_id is no name"]
    bodies = [json.loads(row.body) for row in rows]
    assert bodies == [
        {"queue": "mail", "payload": 1, "timeout_seconds": 1.0},
        {"queue": "mail", "payload": 1, "timeout_seconds": "nan"},
        {"queue": "mail", "payload": 1, "timeout_seconds": 1.0, "tenant_id": "a\r\nX: y"},
    ]


def test_equal_rows_of_two_tenants_are_told_apart() -> None:
    columns = {"payload": pa.array(["1", "1"]), "tenant_id": pa.array(["a", "b"])}
    assert [row.key.rpartition(".")[2] for row in encode(columns)] == ["1", "1"]
    assert len({row.key for row in encode(columns)}) == 2
