"""The Spark session: the same settings on a laptop, in the tests and on a cluster."""

import os
import re
import socket
import sys
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from app.pipeline.errors import PipelineError
from app.pipeline.java import use_java
from app.pipeline.messages import one_line

# Python data sources may narrow what they read; times are UTC on both sides; rows that are written by date are not
# sorted by it first, which takes longer than to write them, as long as there are few dates.
SETTINGS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.maxConcurrentOutputFileWriters": "40",
    # What goes between Java and Python goes by as much at once as a batch of rows has.
    "spark.buffer.size": str(1024 * 1024),
}
# What `spark-submit` would be told by whoever submits.
OWN_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# A small job needs few partitions. What is written waits in memory, in each of the files that are open: so few are.
# Where there are more dates than that, rows are sorted after all, and parts of files are written out early.
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.hadoop.parquet.block.size": str(32 * 1024 * 1024),
    "spark.hadoop.parquet.memory.pool.ratio": "0.3",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    "spark.sql.shuffle.partitions": "4",
}
# Arrow does not check each access to a column: what Spark's workers send was checked as it was made.
JAVA_OPTIONS = "-Duser.timezone=UTC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
# Java takes about 300 MiB beside its heap. All in all a driver on two cores stays below 1 GiB, at any number of rows.
# Spark wants 450 MiB at least, of which the collector takes a part.
LEAST_HEAP_MIB = 480
HEAP_MIB = 352
HEAP_MIB_PER_CORE = 64
# It wants the least memory beside the heap; with more cores than these it would keep them waiting. The heap grows only
# as far as it must, and what is free is given back: Java would keep all that it ever had.
SERIAL_COLLECTOR = "-XX:+UseSerialGC -Xms256m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=50"
CORES_OF_SERIAL_COLLECTOR = 4
MALLOC_ARENAS = "2"
CORES = re.compile(r"local\[(\d+)")
LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\])?")
STANDALONE = re.compile(r"spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*")
KUBERNETES = re.compile(r"k8s://\S+")
# One of them says where YARN is, or may lead to a file that does.
YARN_VARIABLES = frozenset({"HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME"})
# Spark itself would try for a minute.
CONNECT_SECONDS = 3


def open_session(name: str, master: str | None = None) -> SparkSession:
    """A session on a master; without one, on what `spark-submit` says, else on this machine's cores.

    Raises `PipelineError` if Spark cannot be started there.
    """
    if master is not None:
        check_master(master)
    # Workers take this interpreter, not whatever `python3` is on their path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"leasemq {name}")
    for setting, value in _settings(master).items():
        builder = builder.config(setting, value)
    # What they write down is raised as well, and told in one line where a command ends.
    for logger in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(logger).disabled = True
    session = _start(builder, master)
    session.sparkContext.setLogLevel("ERROR")
    return session


def check_master(master: str) -> None:
    """Raises `PipelineError` for what is no master, or one that nobody can be reached at."""
    if STANDALONE.fullmatch(master):
        _refuse_unreachable(master)
    elif master == "yarn":
        _refuse_unknown_yarn()
    elif not LOCAL.fullmatch(master) and not KUBERNETES.fullmatch(master):
        raise PipelineError(
            f"{master!r} is no master of Spark: give local, local[4], local[*], spark://host:7077, yarn or k8s://…"
        )


def _refuse_unknown_yarn() -> None:
    if not YARN_VARIABLES & os.environ.keys():
        raise PipelineError("Where YARN is, is not known: set HADOOP_CONF_DIR or YARN_CONF_DIR.")


def _refuse_unreachable(master: str) -> None:
    """A standby may be down, as long as one of them answers."""
    reasons = [_unreachable(address) for address in master.removeprefix("spark://").split(",")]
    if all(reasons):
        raise PipelineError(f"Spark's master {master} cannot be reached: {reasons[0]}.")


def _unreachable(address: str) -> str | None:
    """Why nobody can be reached at `host:port`; None if somebody can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    # The last two are for a port or a name that cannot be one.
    except (OSError, OverflowError, UnicodeError) as error:
        return str(getattr(error, "strerror", None) or error)
    return None


def _start(builder: SparkSession.Builder, master: str | None) -> SparkSession:
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        where = "" if master is None else f" on {master}"
        raise PipelineError(f"Spark cannot be started{where}: {one_line(error)}") from error


def _settings(master: str | None) -> dict[str, str]:
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # `spark-submit` has started Java and this process, and has settings of its own.
        return SETTINGS | ({} if master is None else {"spark.master": master})
    use_java()
    _start_quietly()
    # Java has many threads, and the C library would keep memory apart for each of them.
    os.environ.setdefault("MALLOC_ARENA_MAX", MALLOC_ARENAS)
    local = master is None or master.startswith("local")
    own = SETTINGS | OWN_SETTINGS | (local_settings(master or "local[*]") if local else {})
    return {"spark.master": master or "local[*]"} | own


def local_settings(master: str) -> dict[str, str]:
    """Java's memory goes by the number of cores; `SPARK_DRIVER_MEMORY`, which is Spark's own, says otherwise."""
    cores = _cores(master)
    heap = max(LEAST_HEAP_MIB, HEAP_MIB + HEAP_MIB_PER_CORE * cores)
    collector = f" {SERIAL_COLLECTOR}" if cores <= CORES_OF_SERIAL_COLLECTOR else ""
    memory = os.environ.get("SPARK_DRIVER_MEMORY", f"{heap}m")
    java = {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": JAVA_OPTIONS + collector}
    return LOCAL_SETTINGS | java


def _cores(master: str) -> int:
    if master == "local":
        return 1
    named = CORES.match(master)
    return int(named[1]) if named else (os.cpu_count() or 1)


def _start_quietly() -> None:
    """Has Spark's Java log errors only, from its first line on, unless somebody has settings of their own for it."""
    if not {"SPARK_CONF_DIR", "SPARK_HOME", "SPARK_SUBMIT_OPTS"} & os.environ.keys():
        os.environ["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
