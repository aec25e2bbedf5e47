"""The Spark session of a run, and what its driver takes of memory."""

import threading
from collections.abc import Callable
from functools import cache

import psutil
from pyspark.sql import SparkSession

from app.pipeline.datasource import register
from app.pipeline.session import open_session
from bench.usage import MEBIBYTE

SAMPLE_SECONDS = 0.2


def cores() -> int:
    """As many as the machine has: both sides of a comparison use them all."""
    return psutil.cpu_count() or 1


@cache
def session() -> SparkSession:
    """One session for the run: its start is nobody's figure."""
    spark = open_session("bench", f"local[{cores()}]")
    register(spark)
    return spark


def driver_peak_mib(work: Callable[[], object]) -> float:
    """The most memory that the driver's Java and this process held while some work was done.

    On `local` the executor is in the same Java, so that this is more than a driver alone would hold.
    """
    peak, ended, driver = 0.0, threading.Event(), _driver()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(SAMPLE_SECONDS):
            peak = max(peak, sum(process.memory_info().rss for process in driver) / MEBIBYTE)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        ended.set()
        watcher.join()
    return peak


def _driver() -> list[psutil.Process]:
    # Spark's Java is a child of this process; the workers' processes, which come and go, are children of Java.
    here = psutil.Process()
    return [here, *(child for child in here.children() if child.name() == "java")]
