"""A database of each dialect with the same rows."""

import asyncio

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from app.pipeline.datasource import register
from app.pipeline.tables import TABLES, Table
from tests.conftest import DIALECTS, MakeDatabase
from tests.pipeline.source.rows import Row, edge_rows, insert_rows

ROWS: dict[str, list[Row]] = {name: edge_rows(table) for name, table in TABLES.items()}


@pytest.fixture(scope="session", params=DIALECTS)
def edges_url(request: pytest.FixtureRequest, make_database: MakeDatabase) -> str:
    """A database with the edge rows in each table."""
    url = make_database(request.param)
    asyncio.run(insert_rows(url, ROWS))
    return url


@pytest.fixture(scope="session")
def sqlite_url(make_database: MakeDatabase) -> str:
    """The same in one file, for what does not depend on the dialect."""
    url = make_database("sqlite")
    asyncio.run(insert_rows(url, ROWS))
    return url


@pytest.fixture(scope="session")
def mq(spark: SparkSession) -> SparkSession:
    """The session, which knows the format."""
    register(spark)
    return spark


def written(table: Table) -> pa.Table:
    """The rows that were written, as Arrow."""
    names = table.arrow_schema.names
    return pa.Table.from_pylist([{name: row[name] for name in names} for row in ROWS[table.name]], table.arrow_schema)
