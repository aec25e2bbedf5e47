"""Times: RFC 3339 in, UTC with microseconds out."""

import pytest

from tests.api.caller import Caller

INSTANTS = {
    "2100-01-31T12:00:00Z": "2100-01-31T12:00:00.000000Z",
    "2100-01-31T12:00:00z": "2100-01-31T12:00:00.000000Z",
    "2100-01-31t12:00:00Z": "2100-01-31T12:00:00.000000Z",
    "2100-01-31T12:00:00.5Z": "2100-01-31T12:00:00.500000Z",
    "2100-01-31T12:00:00.123456Z": "2100-01-31T12:00:00.123456Z",
    "2100-01-31T12:00:00.123456789Z": "2100-01-31T12:00:00.123456Z",
    "2100-01-31T12:00:00+02:00": "2100-01-31T10:00:00.000000Z",
    "2100-01-31T23:30:00-05:30": "2100-02-01T05:00:00.000000Z",
    "2100-01-31T12:00:00+00:00": "2100-01-31T12:00:00.000000Z",
    "2100-01-31T12:00:00-00:00": "2100-01-31T12:00:00.000000Z",
    "2104-02-29T00:00:00Z": "2104-02-29T00:00:00.000000Z",
    "1970-01-01T00:00:00Z": "1970-01-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z": "9999-12-31T23:59:59.999999Z",
}


@pytest.mark.parametrize(("given", "kept"), INSTANTS.items())
def test_instant_is_kept_in_utc(api: Caller, given: str, kept: str) -> None:
    accepted = api.enqueue(available_at=given, expires_at="9999-12-31T23:59:59.999999Z")
    assert accepted["available_at"] == kept
    task = api.task(accepted["id"])
    assert (task["available_at"], task["expires_at"]) == (kept, "9999-12-31T23:59:59.999999Z")
    assert task["status"] == ("ready" if kept < task["created_at"] else "scheduled")


def test_instants_in_edits_and_nacks(api: Caller) -> None:
    task = api.lease()
    reply = api.settle("nack", task, retry_at="2100-01-31T12:00:00+02:00")
    assert reply["available_at"] == "2100-01-31T10:00:00.000000Z"
    fields = {"available_at": "2100-01-31T12:00:00.25-01:00", "expires_at": "2101-01-01T00:00:00Z"}
    edited = api.client.patch(f"/v1/tasks/{task['id']}", json=fields).json()
    assert edited["available_at"] == "2100-01-31T13:00:00.250000Z"
    assert edited["expires_at"] == "2101-01-01T00:00:00.000000Z"


def test_instants_in_queries(api: Caller) -> None:
    api.die()
    [letter] = api.dead_letters(after="2020-01-01T00:00:00+02:00", before="2100-01-01t00:00:00z")
    assert api.dead_letters(before="2020-01-01T00:00:00Z") == []
    assert api.dead_letters(after="2100-01-01T00:00:00Z") == []
    assert letter["failed_at"] == letter["finished_at"]
