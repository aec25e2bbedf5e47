"""A steady load with autovacuum at work: is it as fast at the end as at the beginning, and as small?"""

import asyncio
from dataclasses import replace
from statistics import mean, median

import asyncpg

from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage
from tests.service import Service

SLICES = 10
SIZE = "SELECT pg_total_relation_size('mq_tasks') / 1048576.0"


async def _table_mib(url: str) -> float:
    connection = await asyncpg.connect(url)
    try:
        return float(await connection.fetchval(SIZE))
    finally:
        await connection.close()


def _measure(stage: Stage, service: Service, url: str) -> Measured:
    plan = replace(stage.plan, connections=64, seconds=stage.form.steady_seconds / SLICES, warmup_seconds=0.0)
    slices = [stage.measure_load(service, plan) for _ in range(SLICES)]
    rates = [measured["cycles"] for measured in slices]
    return {
        "cycles": median(rates),
        "end_to_start": mean(rates[-3:]) / mean(rates[:3]),
        "worst_to_median": min(rates) / median(rates),
        "turn_p99_ms": median(measured["turn_p99_ms"] for measured in slices),
        "server_mib_start": slices[0]["server_mib"],
        "server_mib_end": slices[-1]["server_mib"],
        "table_mib_end": asyncio.run(_table_mib(url)),
    }


def _prepare(stage: Stage) -> list[Contestant]:
    url = stage.databases.create("postgresql")
    service = stage.start_service(url=url)
    return [Contestant("LeaseMQ", lambda: _measure(stage, service, url))]


STEADY = Scenario(
    name="steady",
    title="A steady run, in ten slices",
    prepare=_prepare,
    rounds=1,
    shown=(
        "cycles", "end_to_start", "worst_to_median", "turn_p99_ms", "server_mib_start", "server_mib_end",
        "table_mib_end",
    ),
)  # fmt: skip
