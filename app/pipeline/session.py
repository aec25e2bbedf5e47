"""The Spark session: the same settings on a laptop, in the tests and on a cluster."""

import os
import sys

from pyspark.sql import SparkSession

# Python data sources may narrow what they read; times are UTC on both sides; a small job needs few partitions.
SETTINGS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
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
    local = master is None or master.startswith("local")
    builder = SparkSession.builder.appName(f"leasemq {name}").master(master or "local[*]")
    for setting, value in (SETTINGS | (LOCAL_SETTINGS if local else {})).items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
