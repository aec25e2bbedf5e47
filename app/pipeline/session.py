"""The Spark session: the same settings on a laptop, in the tests and on a cluster."""

import os
import sys

from pyspark.sql import SparkSession

from app.pipeline.java import use_java

# Python data sources may narrow what they read; times are UTC on both sides; rows that are written by date are not
# sorted by it first, which takes longer than to write them, as long as there are few dates.
SETTINGS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.maxConcurrentOutputFileWriters": "40",
}
# What `spark-submit` would be told by whoever submits.
OWN_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# A small job needs few partitions.
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.shuffle.partitions": "4",
}


def open_session(name: str, master: str | None = None) -> SparkSession:
    """A session on a master; without one, on what `spark-submit` says, else on this machine's cores."""
    # Workers take this interpreter, not whatever `python3` is on their path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"leasemq {name}")
    for setting, value in _settings(master).items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(master: str | None) -> dict[str, str]:
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # `spark-submit` has started Java and this process, and has settings of its own.
        return SETTINGS | ({} if master is None else {"spark.master": master})
    use_java()
    local = master is None or master.startswith("local")
    return {"spark.master": master or "local[*]"} | SETTINGS | OWN_SETTINGS | (LOCAL_SETTINGS if local else {})
