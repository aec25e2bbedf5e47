"""The session that everything of the pipeline runs in."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.pipeline.errors import PipelineError
from app.pipeline.session import YARN_VARIABLES, check_master, local_settings

LEASEMQ = str(Path(sys.executable).with_name("leasemq"))
UNREACHABLE = "127.0.0.1:1"


@pytest.fixture
def listening() -> Iterator[str]:
    """The address of somebody who answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_times_are_utc(spark: SparkSession) -> None:
    row = spark.range(1).select(F.to_timestamp(F.lit("2026-01-02 03:04:05")).cast("long").alias("at")).first()
    assert row is not None
    assert row.at == 1767323045


@pytest.mark.parametrize(
    ("master", "heap"), [("local", "480m"), ("local[1]", "480m"), ("local[2,3]", "480m"), ("local[16]", "1376m")]
)
def test_the_heap_goes_by_the_cores(monkeypatch: pytest.MonkeyPatch, master: str, heap: str) -> None:
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    assert local_settings(master)["spark.driver.memory"] == heap


def test_whoever_says_how_much_memory_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")
    assert local_settings("local[*]")["spark.driver.memory"] == "3g"


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local[2,3]", "local[*, 3]", "k8s://https://host:6443"]
)
def test_what_is_a_master(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "nonsense", "local[abc]", "local[0]", "local[]", "local[2", "spark://host", "spark://", "k8s://"]
)
def test_what_is_no_master(master: str) -> None:
    with pytest.raises(PipelineError, match="is no master of Spark: give local"):
        check_master(master)


def test_yarn_must_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in YARN_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(PipelineError, match="set HADOOP_CONF_DIR"):
        check_master("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    check_master("yarn")


@pytest.mark.parametrize("address", [UNREACHABLE, "[::1]:1", "127.0.0.1:99999", "no..name:7077"])
def test_a_master_that_cannot_be_reached(address: str) -> None:
    with pytest.raises(PipelineError, match=r"^Spark's master spark://.* cannot be reached: .+\.$"):
        check_master(f"spark://{address}")


def test_one_of_several_masters_is_enough(listening: str) -> None:
    check_master(f"spark://{UNREACHABLE},{listening}")


@pytest.mark.parametrize(
    ("master", "environment", "told"),
    [
        ("nonsense", {}, "is no master of Spark"),
        ("local[1]", {"SPARK_DRIVER_MEMORY": "1m"}, "Spark cannot be started on local[1]: "),
    ],
)
def test_spark_that_does_not_start_is_told_in_a_line(
    tmp_path: Path, master: str, environment: dict[str, str], told: str
) -> None:
    command = [LEASEMQ, "pipeline", "report", "--lake", "lake", "--out", "out", "--master", master]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | environment, check=False
    )
    [line] = [line for line in done.stderr.splitlines() if line.startswith("leasemq: ")]
    assert done.returncode == 2
    assert told in line
    assert "Traceback" not in done.stderr
