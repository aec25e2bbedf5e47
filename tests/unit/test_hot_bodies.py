"""The quick reading of hot bodies takes nothing that the declared model refuses, and means the same by it."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ValidationError

from app.api.hot_bodies import HOT_BODIES, HotBody, HotReader
from app.api.json_body import decode_body
from app.api.requests import (
    AckBatch,
    AckBody,
    EnqueueBatch,
    EnqueueRequest,
    ExtendBatch,
    ExtendBody,
    ReleaseBatch,
    ReleaseBody,
    ReserveBody,
)
from app.domain.errors import ContentTooLarge
from app.domain.task import NewTask

TOKEN = "Yy7GoYxbskL4PfTQ1eoWdix76rpyZCbJ"
SOUND: dict[type[BaseModel], dict[str, Any]] = {
    EnqueueRequest: {
        "queue": "mail", "payload": {"to": "ada"}, "type": "welcome", "meta": {"a": 1}, "priority": 3,
        "dedupe_key": "ключ", "dedupe_seconds": 1, "max_attempts": 0, "delay_seconds": 0.5, "ttl_seconds": 60,
        "timeout_seconds": 5, "id": "given",
    },
    ReserveBody: {"queues": ["a", "b"], "limit": 10, "lease_seconds": 30, "wait_seconds": 1.5, "worker_id": "Ada 🦊"},
    AckBody: {"lease_token": TOKEN, "result": {"x": [1, 2]}},
    ReleaseBody: {"lease_token": TOKEN},
    ExtendBody: {"lease_token": TOKEN, "lease_seconds": 30},
}  # fmt: skip
ENTRIES: dict[type[BaseModel], tuple[str, type[BaseModel]]] = {
    EnqueueBatch: ("tasks", EnqueueRequest),
    AckBatch: ("items", AckBody),
    ReleaseBatch: ("items", ReleaseBody),
    ExtendBatch: ("items", ExtendBody),
}

# As JSON text: some of it can be told in no other way.
VALUES = (
    "null", "true", "false", "0", "-0", "1", "-1", "1.0", "1.5", "1e2", "1e400", "-1e-400", "2147483647", "2147483648",
    "-2147483648", "-2147483649", "99999999999999999999", "3153600000", "3153600001", "31", "30", "1000", "1001",
    '""', '"a"', '"."', '".."', '"..."', '"a b"', '"a\\n"', '"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"ü"', '"🦊"',
    '"' + "a" * 64 + '"', '"' + "a" * 65 + '"', '"' + "a" * 128 + '"', '"' + "ä" * 129 + '"', '"' + "a" * 255 + '"',
    '"' + "a" * 256 + '"', '"' + "a" * 513 + '"', "[]", "{}", '["a"]', '["a", "a"]', '["a", 1]', '[""]',
    '["."]', "[null]", '{"a": 1}', '{"a": "\\u0000"}', '{"a": "\\ud800"}', ' {"a" : 1.10 } ',
    '"2026-01-31T12:00:00Z"', '{"a": NaN}',
    "[" + '"a",' * 100 + '"a"]', "[" * 2000 + "]" * 2000, '"' + "a" * 20_000 + '"', '{"a": "' + "a" * 16_400 + '"}',
    '"' + "a" * 262_150 + '"',
)  # fmt: skip


def read_hot(model: type[BaseModel], body: bytes) -> HotBody | None:
    return HotReader(model).read(body)


def read_declared(model: type[BaseModel], body: bytes) -> BaseModel | None:
    try:
        return model.model_validate(decode_body(body))
    except (json.JSONDecodeError, ValidationError, ContentTooLarge):
        return None


def meaning(body: Any) -> object:
    """What the service gets to hear."""
    if hasattr(body, "to_task"):
        return _but_for_its_own_id(body.to_task())
    if hasattr(body, "to_request"):
        return (body.to_request("tenant"), body.wait_seconds)
    if hasattr(body, "tasks"):
        return [meaning(task) for task in body.tasks]
    if hasattr(body, "items"):
        return [entry.to_item(entry.id) for entry in body.items]
    return body.to_item("task")


def _but_for_its_own_id(task: NewTask) -> NewTask:
    return task if task.id_is_given else msgspec.structs.replace(task, id="")


def written(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items()) + "}"


def bodies(sound: dict[str, Any], names: frozenset[str]) -> Iterator[str]:
    """The sound body, without each of its fields, with each other value in each field, and with more of them."""
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in sound.items()}
    yield written(texts)
    for name in texts:
        yield written({other: text for other, text in texts.items() if other != name})
    for name in sorted(names | {"unknown"}):
        for value in VALUES:
            yield written({**texts, name: value})
            yield written({**{other: texts[other] for other in ("queue", "payload") if other in texts}, name: value})


def agree(model: type[BaseModel], body: str) -> bool:
    """Whether the quick reading took it; it must not take what the model does not."""
    data = body.encode("utf-8", "surrogatepass")
    hot = read_hot(model, data)
    if hot is None:
        return False
    declared = read_declared(model, data)
    assert declared is not None, body[:200]
    assert meaning(hot) == meaning(declared), body[:200]
    return True


@pytest.mark.parametrize("model", SOUND, ids=lambda model: model.__name__)
def test_single_bodies(model: type[BaseModel]) -> None:
    taken = [agree(model, body) for body in bodies(SOUND[model], frozenset(model.model_fields))]
    # The sound one is taken, and far from everything.
    assert taken[0]
    assert not all(taken)


@pytest.mark.parametrize("model", ENTRIES, ids=lambda model: model.__name__)
def test_batches(model: type[BaseModel]) -> None:
    items, single = ENTRIES[model]
    sound = {**SOUND[single], "id": "given"}
    names = frozenset(single.model_fields) | {"id"}
    taken = [agree(model, f'{{"{items}": [{body}]}}') for body in bodies(sound, names)]
    assert taken[0]
    assert not all(taken)
    assert not agree(model, f'{{"{items}": []}}')
    assert not agree(model, f'{{"{items}": [{", ".join([json.dumps(sound)] * 1001)}]}}')


def test_bytes_that_are_no_text_are_refused() -> None:
    assert read_hot(EnqueueRequest, b'{"queue": "a", "payload": "\xff"}') is None


def test_every_hot_body_is_looked_at() -> None:
    assert {*SOUND, *ENTRIES} == set(HOT_BODIES)
