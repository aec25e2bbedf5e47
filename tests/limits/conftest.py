"""Two replicas of the test's own in each dialect, one of which it may kill."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.caller import new_tenant
from tests.limits.fleet import Fleet, services_on


@pytest.fixture
async def fleet(database_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    with services_on(database_url, tmp_path, {}, {}) as services:
        fleet = Fleet(services, new_tenant())
        yield fleet
        await fleet.close()
    assert fleet.failures == []
