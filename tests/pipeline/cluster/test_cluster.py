"""The same code on a cluster: a real master and two workers."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.pipeline.tables import ATTEMPTS
from tests.conftest import MakeDatabase
from tests.pipeline.cluster.standalone import PROGRAMS, cluster_environment, standalone_cluster
from tests.pipeline.source.conftest import ROWS, written
from tests.pipeline.source.rows import insert_rows
from tests.service import COMMAND, ROOT, Service

JOB = Path(__file__).with_name("job.py")
SMALL = ["--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="module")
def attempts_url(make_database: MakeDatabase) -> str:
    url = make_database("postgresql")
    asyncio.run(insert_rows(url, {"attempts": ROWS["attempts"]}))
    return url


@pytest.fixture(scope="module")
def service(attempts_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(attempts_url, tmp_path_factory.mktemp("service") / "log") as service:
        yield service


def told(command: list[str]) -> dict[str, Any]:
    """What the job found."""
    done = subprocess.run(command, cwd=ROOT, env=cluster_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def expected(spark: SparkSession) -> tuple[int, int]:
    frame = spark.createDataFrame(written(ATTEMPTS), ATTEMPTS.spark_schema)
    [row] = frame.agg(F.count("*"), F.sum(F.xxhash64(*frame.columns).cast("decimal(38, 0)"))).collect()
    return row[0], int(row[1])


def ready(service: Service, queue: str) -> int:
    """How many tasks wait in a queue."""
    return int(httpx.get(f"{service.url}/v1/queues/{queue}/stats").json()["ready"])


def test_job_runs_on_a_master(spark: SparkSession, cluster: str, attempts_url: str, service: Service) -> None:
    found = told([sys.executable, "-m", "tests.pipeline.cluster.job", attempts_url, service.url, "one", cluster])
    assert (found["rows"], found["digest"]) == expected(spark)
    assert ready(service, "one") == found["rows"]
    assert (found["master"], found["executors"]) == (cluster, 2)


def test_job_is_submitted_with_its_package(
    spark: SparkSession, cluster: str, attempts_url: str, service: Service, tmp_path: Path
) -> None:
    package = shutil.make_archive(str(tmp_path / "leasemq"), "zip", ROOT, "app")
    submit = [str(PROGRAMS / "spark-submit"), "--master", cluster, *SMALL, "--py-files", package]
    found = told([*submit, str(JOB), attempts_url, service.url, "two"])
    assert (found["rows"], found["digest"]) == expected(spark)
    assert ready(service, "two") == found["rows"]
    assert (found["master"], found["executors"]) == (cluster, 2)
    # The workers took the package that was sent, not one that lies about on this machine.
    assert all("leasemq.zip" in path for path in found["code"])


def test_archive_runs_on_a_master(cluster: str, make_database: MakeDatabase, tmp_path: Path) -> None:
    url = make_database("postgresql")
    asyncio.run(insert_rows(url, {"history": ROWS["history"]}))
    # What ends in the year 9999 is not old yet.
    old = sum(row["finished_at"].year < 2026 for row in ROWS["history"])
    arguments = ["--lake", str(tmp_path / "lake"), "--older-than", "300d", "--database-url", url, "--master", cluster]
    command = [str(COMMAND), "pipeline", "archive", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=cluster_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"history: {old} rows moved" in done.stdout
