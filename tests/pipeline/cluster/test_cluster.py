"""The same commands on a cluster: a real master and two workers."""

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.pipeline.report.output import PAGE
from app.pipeline.tables import ATTEMPTS
from tests.conftest import MakeDatabase
from tests.pipeline.archive.ledger import open_ledger
from tests.pipeline.archive.requests import OLD, RECENT
from tests.pipeline.cluster.standalone import PROGRAMS, cluster_environment, standalone_cluster
from tests.pipeline.sink.queue import Queue
from tests.pipeline.source.conftest import ROWS, written
from tests.pipeline.source.rows import insert_rows
from tests.service import COMMAND, ROOT, Service

# Finds what is installed, but nothing that is installed in place, as this package is.
PYTHON = '#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {python} -S "$@"\n'
TENANT = "tenant"
DONE, DEAD, LOADED = 40, 3, 25


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@dataclass(frozen=True)
class Edges:
    """A database with attempts of all sorts, and what they are."""

    url: str
    rows: int
    digest: int


@pytest.fixture(scope="module")
def edges(spark: SparkSession, make_database: MakeDatabase) -> Edges:
    url = make_database("postgresql")
    asyncio.run(insert_rows(url, {"attempts": ROWS["attempts"]}))
    frame = spark.createDataFrame(written(ATTEMPTS), ATTEMPTS.spark_schema)
    [row] = frame.agg(F.count("*"), F.sum(F.xxhash64(*frame.columns).cast("decimal(38, 0)"))).collect()
    return Edges(url, row[0], int(row[1]))


@pytest.fixture(scope="module")
def service(edges: Edges, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(edges.url, tmp_path_factory.mktemp("service") / "log") as service:
        yield service


@pytest.fixture
def finished_url(make_database: MakeDatabase) -> str:
    """A database in which much ended long ago."""
    url = make_database("postgresql")
    asyncio.run(finish(url))
    return url


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(f"{number}\n" for number in range(LOADED)))
    return path


async def finish(url: str) -> None:
    ledger = await open_ledger(url)
    await ledger.finish_many(DONE, OLD)
    await ledger.bury_many(DEAD, OLD)
    await ledger.finish_many(DONE, RECENT)
    await ledger.dialect.close()


def run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """What a command says."""
    given = cluster_environment() | (environment or {})
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def waiting(service: Service, queue: str, tenant: str = "default") -> int:
    """How many tasks wait in a queue."""
    opened = Queue(service.url, queue, tenant)
    try:
        return opened.waiting()
    finally:
        opened.close()


def test_everything_runs_on_a_master(
    cluster: str, edges: Edges, finished_url: str, service: Service, file: Path
) -> None:
    lake, out, state = str(file.parent / "lake"), file.parent / "report", str(file.parent / "jobs")
    into = ["--to", service.url, "--state", state]
    commands = [
        ["archive", "--lake", lake, "--older-than", "7d", "--dead-letters", "--database-url", finished_url],
        ["report", "--lake", lake, "--live", finished_url, "--out", str(out)],
        ["replay", "--lake", lake, "--where", "status = 'done'", "--queue", "replayed", *into],
        ["load", str(file), "--queue", "loaded", *into],
    ]
    session = [sys.executable, "-m", "tests.pipeline.cluster.session", cluster, edges.url, service.url, "written"]
    told = run(*session, json.dumps(commands))
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    assert (found["rows"], found["digest"]) == (edges.rows, edges.digest)
    assert found["codes"] == [0, 0, 0, 0]
    assert (found["master"], found["executors"]) == (cluster, 2)
    assert f"history: {DONE} rows moved\ndlq: {DEAD} rows moved\nattempts: {DONE + DEAD} rows moved\n" in told
    assert (out / PAGE).is_file()
    assert waiting(service, "written") == edges.rows
    assert waiting(service, "replayed", TENANT) == DONE
    assert waiting(service, "loaded") == LOADED


def test_commands_are_submitted_with_their_package(
    cluster: str, finished_url: str, service: Service, file: Path, tmp_path: Path
) -> None:
    lake, out, state = str(tmp_path / "lake"), tmp_path / "report", str(tmp_path / "jobs")
    run(COMMAND, "pipeline", "package", tmp_path)
    submit: list[str | Path] = [PROGRAMS / "spark-submit", "--master", cluster]
    submit += ["--py-files", tmp_path / "leasemq.zip", tmp_path / "leasemq_pipeline.py"]
    # Neither the driver nor the workers have the package from anywhere else.
    environment = {"PYSPARK_PYTHON": str(bare_python(tmp_path)), "MQ_DATABASE_URL": finished_url}
    told = run(*submit, "archive", "--lake", lake, "--older-than", "7d", environment=environment)
    assert told.endswith(f"history: {DONE} rows moved\nattempts: {DONE} rows moved\n")
    told = run(*submit, "report", "--lake", lake, "--out", out, environment=environment)
    assert told.endswith(f"{out / PAGE}\n")
    into = ["--queue", "submitted", "--to", service.url, "--state", state]
    run(*submit, "load", file, *into, environment=environment)
    assert waiting(service, "submitted") == LOADED


def bare_python(directory: Path) -> Path:
    """A Python that cannot import the package."""
    python = directory / "python"
    python.write_text(PYTHON.format(packages=sysconfig.get_path("purelib"), python=sys.executable))
    python.chmod(0o755)
    found = subprocess.run(
        [python, "-c", "import app.cli"], cwd=directory, env=os.environ, capture_output=True, check=False
    )
    assert b"No module named 'app.cli'" in found.stderr
    return python
