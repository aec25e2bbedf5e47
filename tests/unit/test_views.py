"""Instants as callers see them."""

from datetime import UTC, datetime

import msgspec
import pytest

from app.api.task_views import instant


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "2026-01-02T03:04:05.000006Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC), "2026-01-02T03:04:05.600000Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 0, UTC), "2026-01-02T03:04:05.000000Z"),
        (datetime(987, 1, 2, 3, 4, 5, 0, UTC), "0987-01-02T03:04:05.000000Z"),
        (None, None),
    ],
)
def test_instants_are_written_in_utc_with_microseconds(value: datetime | None, written: str | None) -> None:
    assert msgspec.json.decode(msgspec.json.encode(instant(value))) == written
