"""A real service for the sink's tests, and a queue of each test's own."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from app.pipeline.datasource import register
from tests.conftest import MakeDatabase
from tests.pipeline.sink.queue import Queue
from tests.service import Service


@pytest.fixture(scope="package")
def service_database(make_database: MakeDatabase) -> str:
    return make_database("sqlite")


@pytest.fixture(scope="package")
def service(service_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(service_database, tmp_path_factory.mktemp("service") / "log") as running:
        yield running


@pytest.fixture
def queue(service: Service) -> Iterator[Queue]:
    opened = Queue(service.url, f"q-{uuid4().hex}")
    yield opened
    opened.close()


@pytest.fixture(autouse=True, scope="package")
def _registered(spark: SparkSession) -> None:
    register(spark)


@pytest.fixture
def refused_path(tmp_path: Path) -> Path:
    return tmp_path / "refused"
