"""Payloads come back as they were given: compared as text, since a JSON reader would hide a difference."""

import base64

import httpx
import pytest

from tests.api.caller import QUEUE, Caller
from tests.api.checking import read, refused

JSON = {"Content-Type": "application/json"}

PAYLOADS = {
    "null": "null",
    "true": "true",
    "string": '"text"',
    "empty-string": '""',
    "empty-object": "{}",
    "empty-array": "[]",
    "trailing-zero": "1.10",
    "over-a-double": "1e400",
    "tiny": "1e-400",
    "exponent": "1E+2",
    "negative-zero": "-0",
    "negative-zero-float": "-0.0",
    "long-integer": "123456789012345678901234567890",
    "very-long-integer": "9" * 5000,
    "long-fraction": "3.14159265358979323846264338327950288",
    "key-order": '{"z":1,"a":2,"m":{"y":1,"b":2}}',
    "duplicate-keys": '{"a":1,"a":2}',
    "whitespace-inside": '{ "a" :\t1,\n  "b":  [ 1 , 2 ] }',
    "unicode": '"ü ✓ 𝄞"',
    "escaped-unicode": '"\\u00fc \\u2713 \\ud834\\udd1e \\/"',
    "nul": '"a\\u0000b"',
    "nul-key": '{"\\u0000":1}',
    "lone-surrogate": '"\\ud800"',
    "lone-low-surrogate": '{"\\udfff":["\\uDC00"]}',
    "lone-surrogate-and-numbers": '["\\ud800", 1.10, 1e400, 123456789012345678901234567890]',
    "lone-surrogate-and-very-long-integer": '["\\ud800", ' + "9" * 5000 + "]",
    "line-separators": '"\u2028\u2029\ufeff"',
    "looks-like-a-raw-field": '{"payload":{"payload":1.10},"meta":{},"tasks":[1.10]}',
    "nested": "[" * 200 + "]" * 200,
    "quotes-and-backslashes": '"\\"\\\\\\b\\f\\n\\r\\t \'; DROP TABLE mq_tasks; -- %s :name ?"',
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_json_comes_back_as_given(api: Caller, client: httpx.Client, payload: str) -> None:
    body = f'{{"queue":"{QUEUE}","id":"task","payload":{payload}}}'
    accepted = client.post("/v1/tasks", content=body.encode(), headers=JSON)
    assert accepted.status_code == 201, accepted.text
    part = f'"payload":{payload},'
    assert part in client.get("/v1/tasks/task").text
    assert part in client.get("/v1/tasks").text
    reserved = client.post("/v1/reserve", json={"queues": [QUEUE]})
    assert part in reserved.text
    api.settle("fail", read(reserved)["tasks"][0], reason="no")
    assert part in client.get("/v1/dlq/task").text
    assert part in client.get("/v1/tasks/task").text


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_json_in_a_batch_comes_back_as_given(client: httpx.Client, payload: str) -> None:
    tasks = ",".join(f'{{ "payload" : {payload} , "queue":"{QUEUE}","id":"{name}"}}' for name in "ab")
    accepted = client.post("/v1/tasks/batch", content=f'{{"tasks": [{tasks}]}}'.encode(), headers=JSON)
    assert accepted.status_code == 200, accepted.text
    assert client.get("/v1/tasks").text.count(f'"payload":{payload},') == 2


def test_other_fields_beside_a_lone_surrogate_keep_their_values(client: httpx.Client, api: Caller) -> None:
    body = f'{{"queue":"{QUEUE}","payload":"\\ud800","id":"task","priority":7,"meta":{{"n":[1,"\\u00fc"]}},"type":"t"}}'
    assert client.post("/v1/tasks", content=body.encode(), headers=JSON).status_code == 201
    task = api.task("task")
    assert (task["priority"], task["meta"], task["type"]) == (7, {"n": [1, "ü"]}, "t")


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xfe\x00\x80", bytes(range(256)) * 8, b'{"json": 1}'])
def test_bytes_come_back_as_base64(api: Caller, data: bytes) -> None:
    given = base64.b64encode(data).decode()
    api.enqueue(id="task", payload_base64=given)
    [reserved] = api.reserve()
    for task in (api.task("task"), api.tasks()[0], reserved):
        assert (task["payload_base64"], task["content_type"]) == (given, "application/octet-stream")
        assert "payload" not in task


@pytest.mark.parametrize("payload", [{"payload": 1}, {"payload_base64": "AQI="}], ids=["json", "bytes"])
@pytest.mark.parametrize("content_type", ["text/plain; charset=utf-8", "x", "x" * 255, "ünï/✓"])
def test_content_type_is_the_callers(api: Caller, payload: dict[str, object], content_type: str) -> None:
    assert api.task(api.enqueue(**payload, content_type=content_type)["id"])["content_type"] == content_type


@pytest.mark.parametrize(
    "given",
    ["A", "AQI", "AQI=\n", " AQI=", "AQ I=", "AQI==", "AQ-_", "ÄÖÜ=", "AQI=AQI="],
)
def test_bad_base64_is_refused(api: Caller, client: httpx.Client, given: str) -> None:
    response = client.post("/v1/tasks", json={"queue": QUEUE, "payload_base64": given})
    assert refused(response) == (422, "invalid_request")
    assert api.tasks() == []


def test_meta_keeps_keys_in_order_and_numbers_exact(client: httpx.Client) -> None:
    meta = '{"z":1.10,"a":123456789012345678901234567890,"n":null,"t":"\\u00fc"}'
    body = f'{{"queue":"{QUEUE}","id":"task","payload":1,"meta":{meta}}}'
    assert client.post("/v1/tasks", content=body.encode(), headers=JSON).status_code == 201
    assert f'"meta":{meta},' in client.get("/v1/tasks/task").text


@pytest.mark.parametrize("result", ["1.10", "false", '{"z":1,"a":[]}', '"ü"', "123456789012345678901234567890"])
def test_result_comes_back_as_given(api: Caller, client: httpx.Client, result: str) -> None:
    task = api.lease()
    body = f'{{"lease_token":"{task["lease_token"]}","result":{result}}}'
    client.post(f"/v1/tasks/{task['id']}/ack", content=body.encode(), headers=JSON).raise_for_status()
    assert f'"result":{result},' in client.get(f"/v1/tasks/{task['id']}").text
    assert f'"result":{result},' in client.get("/v1/tasks?status=done").text
