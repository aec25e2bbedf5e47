"""`python -m tests.pipeline.cluster.session MASTER DATABASE_URL SERVICE_URL QUEUE COMMANDS`: all in one session.

Reads a table, enqueues as many tasks, runs commands of `leasemq pipeline` one after the other, and tells what was done.
"""

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from app.cli import main as leasemq
from app.pipeline.session import open_session
from app.pipeline.source.reading import read_table
from app.pipeline.tables import ATTEMPTS


def look_around(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where a worker is."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"place": [os.getcwd()]})


def read_and_write(spark: SparkSession, database_url: str, service_url: str, queue: str) -> dict[str, int]:
    attempts = read_table(spark, database_url, ATTEMPTS, partitions=4)
    [row] = attempts.agg(F.count("*"), F.sum(F.xxhash64(*attempts.columns).cast("decimal(38, 0)"))).collect()
    tasks = attempts.select(F.to_json(F.struct("id")).alias("payload"))
    tasks.write.format("mq").mode("append").options(url=service_url, queue=queue).save()
    return {"rows": row[0], "digest": int(row[1])}


def main(master: str, database_url: str, service_url: str, queue: str, commands: str) -> None:
    spark = open_session("cluster", master)
    found = {
        **read_and_write(spark, database_url, service_url, queue),
        "codes": [leasemq(["pipeline", *command, "--master", master]) for command in json.loads(commands)],
        "executors": len(
            {row.place for row in spark.range(8).repartition(8).mapInArrow(look_around, "place string").collect()}
        ),
        "master": spark.sparkContext.master,
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
