"""Payloads, meta and instants come back exactly as they were given, whichever table they have been through."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.domain.commands import TaskFilter
from app.domain.task import Payload, Status, Task
from tests.conformance.steps import T0, Store, json_payload, settled

KIBIBYTE = 1024


def some_bytes(data: bytes) -> Payload:
    return Payload(data, is_json=False, content_type="application/octet-stream")


PAYLOADS = {
    "every byte": some_bytes(bytes(range(256))),
    "every byte reversed": some_bytes(bytes(reversed(range(256)))),
    "empty": some_bytes(b""),
    "one NUL": some_bytes(b"\0"),
    "quotes and backslashes": some_bytes(b"'\"\\%s%(now)s:now{moves}\r\n\x1a"),
    "not UTF-8": some_bytes(b"\xff\xfe\xc3"),
    "256 KiB": some_bytes(bytes(range(256)) * KIBIBYTE),
    "null": json_payload("null"),
    "big numbers": json_payload("[1e400, 12345678901234567890123, 0.10, 1.0, -0, 1E+2]"),
    "key order and repeated keys": json_payload('{"z": 1, "a": 2, "z": 3}'),
    "white space": json_payload(' { "a" :\n[ ] } '),
    "escaped NUL": json_payload(r'"\u0000"'),
    "escaped lone surrogate": json_payload(r'"\ud800"'),
    "emoji": json_payload('"\U0001f600 é"'),
    "other content type": Payload(b"<a/>", is_json=False, content_type="application/xml; charset=utf-8"),
}

METAS = {
    "empty": "{}",
    "order and white space": '{ "z": 1,\n"a": 2 }',
    "numbers": '{"n": 12345678901234567890.10}',
    "escapes": r'{"a":"\u0000\\\"","b":"%s :now {moves}"}',
    "emoji": '{"\U0001f600":"\U0001f600"}',
    "16 KiB": '{"a":"' + "x" * (16 * KIBIBYTE - 8) + '"}',
}


async def in_every_place(store: Store, payload: Payload, meta: str) -> list[Task]:
    """The task as it is shown by every call that shows one."""
    await store.enqueue("a", payload=payload, meta=meta)
    shown = [await store.get("a"), *(await store.list_live()).items]
    leased = await store.reserve_one()
    settled(await store.fail(leased))
    letters = await store.list_dead_letters()
    shown += [leased.task, await store.get("a"), *(letter.task for letter in letters.items)]
    await store.requeue("a")
    leased = await store.reserve_one(queues=["work", "other"])
    settled(await store.ack(leased))
    done = await store.list_finished(TaskFilter(Status.DONE))
    return [*shown, leased.task, await store.get("a"), *done.items]


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_payload_is_returned_as_it_was_given(store: Store, payload: Payload) -> None:
    shown = await in_every_place(store, payload, "{}")
    assert [task.payload == payload for task in shown] == [True] * 8


@pytest.mark.parametrize("meta", METAS.values(), ids=METAS.keys())
async def test_meta_is_returned_as_it_was_given(store: Store, meta: str) -> None:
    shown = await in_every_place(store, json_payload("1"), meta)
    assert [task.meta == meta for task in shown] == [True] * 8


@pytest.mark.parametrize(
    "text", ["plain", "\U0001f600 é", "'\"\\ %s :now {moves}", "line\nline\ttab\x7f\x01", "trailing  ", "x" * 8192]
)
async def test_error_is_returned_as_it_was_given(store: Store, text: str) -> None:
    settled(await store.nack(await store.lease("a", max_attempts=2), error=text, delay_seconds=0))
    assert (await store.get("a")).last_error == text
    settled(await store.nack(await store.reserve_one(), error=text))
    letter = await store.dead_letter("a")
    assert (letter.reason, letter.task.last_error) == (text, text)
    assert [attempt.reason for attempt in await store.attempts("a")] == [text, text]


@pytest.mark.parametrize("worker_id", ["w", "w" * 128, "\U0001f600" * 128, "trailing "])
async def test_workers_name_is_returned_as_it_was_given(store: Store, worker_id: str) -> None:
    await store.enqueue("a")
    leased = await store.reserve_one(worker_id=worker_id)
    settled(await store.ack(leased))
    assert (leased.task.lease_owner, (await store.get("a")).lease_owner) == (worker_id, worker_id)
    assert (await store.attempts("a"))[0].worker_id == worker_id


@pytest.mark.parametrize("microseconds", [0, 1, 499_999, 500_000, 999_999])
async def test_instants_are_kept_to_the_microsecond(store: Store, microseconds: int) -> None:
    now = T0 + timedelta(microseconds=microseconds)
    expires_at = now + timedelta(days=1)
    await store.enqueue("a", now, expires_at=expires_at, available_at=now)
    leased = (await store.reserve_one(now, lease_seconds=1)).task
    shown = await store.get("a", now)
    assert (shown.created_at, shown.available_at, shown.expires_at) == (now, now, expires_at)
    assert (shown.first_leased_at, shown.lease_until) == (now, now + timedelta(seconds=1))
    assert leased == shown


async def test_instants_are_kept_through_the_history(store: Store) -> None:
    now = T0 + timedelta(microseconds=123_457)
    leased = await store.lease("a", now, ttl_seconds=60)
    later = now + timedelta(microseconds=1)
    settled(await store.ack(leased, later))
    task = await store.get("a", later)
    assert (task.created_at, task.first_leased_at, task.finished_at) == (now, now, later)
    assert task.expires_at == now + timedelta(seconds=60)


@pytest.mark.parametrize("year", [1971, 2039, 2107, 9998])
async def test_far_instants_are_kept(store: Store, year: int) -> None:
    available_at = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    enqueued = await store.enqueue("a", available_at=available_at)
    assert enqueued.available_at == available_at
    assert (await store.get("a")).available_at == available_at


async def test_instant_of_another_zone_is_the_same_instant(store: Store) -> None:
    tokyo = timezone(timedelta(hours=9))
    await store.enqueue("a", available_at=(T0 + timedelta(seconds=10)).astimezone(tokyo))
    task = await store.get("a")
    assert (task.available_at, task.available_at.utcoffset()) == (T0 + timedelta(seconds=10), timedelta(0))
    assert await store.reserve_ids(T0 + timedelta(seconds=9)) == []
    assert await store.reserve_ids(T0 + timedelta(seconds=10)) == ["a"]


@pytest.mark.parametrize("timeout_seconds", [None, 0.1, 3600.0, 1e9])
async def test_timeout_is_kept(store: Store, timeout_seconds: float | None) -> None:
    if timeout_seconds is None:
        await store.enqueue("a")
    else:
        await store.enqueue("a", timeout_seconds=timeout_seconds)
    assert (await store.reserve_one()).task.timeout_seconds == timeout_seconds
