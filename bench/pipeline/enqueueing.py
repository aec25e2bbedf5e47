"""Enqueueing a DataFrame: the data source next to the load generator, both through the batch endpoint."""

import time

from pyspark.sql import functions as F

from app.pipeline.sink.options import DAY_SECONDS
from bench.load import Plan
from bench.pipeline.session import cores, session
from bench.pipeline.sizes import sizes_of
from bench.ratios import Claim
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage
from tests.service import Service

BATCH_SIZE = 1000
MOST_SECONDS = 3600


def _prepare(stage: Stage) -> list[Contestant]:
    rows = sizes_of(stage.form).enqueued
    by_spark, with_keys, without_keys = (stage.start_service() for _ in range(3))
    _enqueue_by_spark(by_spark, BATCH_SIZE)
    return [
        Contestant("the load generator", lambda: _enqueue_directly(stage, with_keys, rows, DAY_SECONDS)),
        Contestant("the data source", lambda: _enqueue_by_spark(by_spark, rows)),
        Contestant("the load generator, no dedupe keys", lambda: _enqueue_directly(stage, without_keys, rows, 0.0)),
    ]


def _enqueue_directly(stage: Stage, service: Service, rows: int, dedupe_seconds: float) -> Measured:
    """The same requests as the data source's, if there are dedupe keys, from a client that only copies bytes."""
    plan = Plan(
        steps="E", connections=cores(), batch=BATCH_SIZE, total=rows, seconds=MOST_SECONDS,
        dedupe_seconds=dedupe_seconds,
    )  # fmt: skip
    started_at = time.monotonic()
    stage.generator.run(service.port, plan)
    return {"rows_per_second": rows / (time.monotonic() - started_at)}


def _enqueue_by_spark(service: Service, rows: int) -> Measured:
    # Of about the size of the load generator's payloads.
    payload = F.to_json(F.struct("id", F.repeat(F.lit("x"), 80).alias("text")))
    tasks = session().range(0, rows, 1, cores()).select(payload.alias("payload"))
    started_at = time.monotonic()
    tasks.write.format("mq").mode("append").option("url", service.url).option("queue", "bench").save()
    return {"rows_per_second": rows / (time.monotonic() - started_at)}


ENQUEUEING = Scenario(
    name="enqueueing",
    title="Enqueueing through HTTP by batches of 1000",
    prepare=_prepare,
    claims=[
        Claim(
            "Enqueueing a DataFrame through HTTP against the load generator on the batch endpoint",
            "enqueueing", "the data source.rows_per_second", "the load generator.rows_per_second", 0.8,
        ),
    ],
    shown=("rows_per_second",),
)  # fmt: skip
