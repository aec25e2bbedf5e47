"""Reserve after many rows have come and gone, while somebody else's transaction keeps them from being cleared away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from bench.direct.call_costs import churn, measure_reserve
from bench.direct.repository_cycle import opened_repository
from bench.ratios import Claim
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage

HOLD = "SELECT count(*) FROM mq_queues"


@asynccontextmanager
async def _held_snapshot(url: str) -> AsyncIterator[None]:
    """A transaction that sees the database as it is now, for as long as it lasts."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval(HOLD)
            yield
    finally:
        await connection.close()


@asynccontextmanager
async def _no_snapshot(url: str) -> AsyncIterator[None]:
    yield


async def _measure(stage: Stage, *, held: bool) -> Measured:
    url = stage.databases.create("postgresql")
    async with opened_repository(url, pool_size=4) as repository:
        await churn(repository, 1000)
        async with (_held_snapshot if held else _no_snapshot)(url):
            await churn(repository, stage.form.churn_rows)
            return {"reserve_ms": await measure_reserve(repository, stage.form.flat_samples)}


def _prepare(stage: Stage) -> list[Contestant]:
    return [
        Contestant("without", lambda: asyncio.run(_measure(stage, held=False))),
        Contestant("under a held snapshot", lambda: asyncio.run(_measure(stage, held=True))),
    ]


SNAPSHOT = Scenario(
    name="snapshot",
    title="Reserve after rows have churned under a held snapshot",
    prepare=_prepare,
    claims=[
        Claim(
            "Reserve after rows churned under a held snapshot (20k in the quick form, else 100k), against without",
            "snapshot", "under a held snapshot.reserve_ms", "without.reserve_ms", 2.0, at_least=False,
        ),
    ],
    shown=("reserve_ms",),
)  # fmt: skip
