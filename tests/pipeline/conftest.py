"""One real Spark session for the whole run: its tests are one group, so that one process runs them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.pipeline.session import open_session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # A failed task is tried again, as on a cluster.
    session = open_session("tests", "local[2,3]")
    yield session
    session.stop()
