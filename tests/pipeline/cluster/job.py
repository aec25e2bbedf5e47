"""A job for a cluster: reads a table, enqueues as many tasks, and tells what was read, where and with whose code.

`python job.py DATABASE_URL SERVICE_URL QUEUE [MASTER]`; `spark-submit` says the master itself.
"""

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import functions as F

from app.pipeline import source
from app.pipeline.session import open_session
from app.pipeline.source.reading import read_table
from app.pipeline.tables import ATTEMPTS


def look_around(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where a worker is, and where it has the package from."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"place": [os.getcwd()], "code": [source.__file__]})


def main() -> None:
    database_url, service_url, queue, *master = sys.argv[1:]
    spark = open_session("cluster", *master)
    attempts = read_table(spark, database_url, ATTEMPTS, partitions=4)
    [row] = attempts.agg(F.count("*"), F.sum(F.xxhash64(*attempts.columns).cast("decimal(38, 0)"))).collect()
    tasks = attempts.select(F.to_json(F.struct("id")).alias("payload"))
    tasks.write.format("mq").mode("append").options(url=service_url, queue=queue).save()
    workers = spark.range(8).repartition(8).mapInArrow(look_around, "place string, code string").collect()
    found = {
        "master": spark.sparkContext.master,
        "rows": row[0],
        "digest": int(row[1]),
        "executors": len({worker.place for worker in workers}),
        "code": sorted({worker.code for worker in workers}),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
