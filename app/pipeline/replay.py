"""From what is over to new tasks: finished tasks out of the lake, dead letters out of the lake or the database."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app.pipeline.condition import where
from app.pipeline.datasource import register
from app.pipeline.errors import PipelineError
from app.pipeline.lake import open_lake
from app.pipeline.messages import SPARK_ERRORS, one_line
from app.pipeline.sink.job import IDENTITY, Rows
from app.pipeline.tables import DLQ, HISTORY, Table

# What a replayed task takes from the one it repeats; everything else, from its attempts to its times, is its own.
CARRIED = ("type", "content_type", "meta", "priority", "max_attempts", "timeout_seconds", "tenant_id")
# When a row of the table came to be what it is: with the row's number, who it is.
ENDED_AT = {HISTORY.name: "finished_at", DLQ.name: "failed_at"}


def replay_rows(
    spark: SparkSession,
    table: Table,
    *,
    lake: str | None,
    database_url: str | None = None,
    condition: str | None = None,
    queue: str | None = None,
    keep_ids: bool = False,
) -> Rows:
    """The tasks that repeat the rows of a table for which the condition is true."""
    try:
        sources = [*_from_lake(spark, table, lake), *_from_database(spark, table, database_url)]
    except SPARK_ERRORS as error:
        raise PipelineError(f"what is to be replayed cannot be read: {one_line(error)}") from error
    if not sources:
        raise PipelineError("say from where: --lake, or for dead letters --database-url")
    over = once(sources, table)
    chosen = over if condition is None else where(over, condition)
    return Rows(to_tasks(chosen, table, queue=queue, keep_ids=keep_ids), repeated=False)


def to_tasks(over: DataFrame, table: Table, *, queue: str | None = None, keep_ids: bool = False) -> DataFrame:
    """New tasks with the payloads and fields of the old ones."""
    payload = F.when(F.col("payload_is_json"), F.col("payload").cast("string")).alias("payload")
    content = F.when(~F.col("payload_is_json"), F.col("payload")).alias("payload_base64")
    into = (F.col("queue") if queue is None else F.lit(queue)).alias("queue")
    ended = F.unix_micros(ENDED_AT[table.name])
    identity = F.concat_ws(".", F.lit(table.name), F.col(table.key).cast("string"), ended.cast("string"))
    ids = [F.col("task_id").alias("id")] if keep_ids else []
    return over.select(into, payload, content, *CARRIED, *ids, identity.alias(IDENTITY))


def once(sources: Sequence[DataFrame], table: Table) -> DataFrame:
    """The rows of all sources; what is in the lake and still in the database is there once."""
    if len(sources) == 1:
        return sources[0]
    return reduce(DataFrame.unionAll, sources).dropDuplicates([table.key, ENDED_AT[table.name]])


def _from_lake(spark: SparkSession, table: Table, url: str | None) -> list[DataFrame]:
    return [] if url is None else [open_lake(spark, url).read(table)]


def _from_database(spark: SparkSession, table: Table, url: str | None) -> list[DataFrame]:
    if url is None:
        return []
    register(spark)
    return [spark.read.format("mq").option("url", url).option("table", table.name).load()]
