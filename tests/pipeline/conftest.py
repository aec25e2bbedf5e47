"""One real Spark session for the whole run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from app.pipeline.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """All tests of this directory are run by one process. A failed task is tried again, as on a cluster."""
    session = open_session("tests", "local[2,3]")
    yield session
    session.stop()
