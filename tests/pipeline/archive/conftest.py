"""A database in each dialect whose rows are kept a second time."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import DIALECTS, MakeDatabase
from tests.pipeline.archive.ledger import Ledger, open_ledger


@pytest.fixture(params=DIALECTS)
async def ledger(request: pytest.FixtureRequest, make_database: MakeDatabase) -> AsyncIterator[Ledger]:
    """An empty database of the test's own."""
    opened = await open_ledger(make_database(request.param))
    yield opened
    await opened.dialect.close()
