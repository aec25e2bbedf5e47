"""Reserve after many rows have come and gone, while somebody else's transaction keeps them from being cleared away."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import cycle, islice

import asyncpg
from msgspec.structs import replace

from app.domain.commands import ReserveRequest
from app.domain.queue import QueueSettings
from app.repository.factory import Repositories
from app.repository.protocol import Repository
from bench.direct.call_costs import WARMUP_CALLS, measure_reserve
from bench.direct.repository_cycle import ack_all, opened_repositories, reserve_request
from bench.direct.workload import QUEUE, TENANT, new_tasks
from bench.ratios import Claim
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage

HOLD = "SELECT count(*) FROM mq_queues"
TYPE = "mail"
CHURNED_AT_ONCE = 1000
# Some of the leases have ended by the time that it is measured, some have not.
CHURNED_LEASE_SECONDS = (1.0, 60.0)
# Limits that are looked at, and never reached.
LIMITS = {"rate": QueueSettings(rate_per_second=1e6), "concurrency": QueueSettings(concurrency_limit=1_000_000)}

KINDS: Mapping[str, tuple[str, ReserveRequest]] = {
    "reserve": ("Reserve", reserve_request(1)),
    "types": ("Reserve of a type", replace(reserve_request(1), types=[TYPE])),
    "several": ("Reserve of three queues", replace(reserve_request(1), queues=[QUEUE, "bench-2", "bench-3"])),
    "rate": ("Reserve under a rate", reserve_request(1)),
    "concurrency": ("Reserve under a limit of concurrency", reserve_request(1)),
    "empty": ("Reserve of a queue that is empty", reserve_request(1)),
}


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


async def _churn(repository: Repository, rows: int) -> None:
    """Takes so many tasks of a type through the whole cycle."""
    for lease_seconds in islice(cycle(CHURNED_LEASE_SECONDS), rows // CHURNED_AT_ONCE):
        await _enqueue(repository, CHURNED_AT_ONCE)
        request = replace(reserve_request(CHURNED_AT_ONCE), lease_seconds=lease_seconds)
        [reserved] = await repository.reserve_many([request])
        await ack_all(repository, reserved)


async def _enqueue(repository: Repository, count: int) -> None:
    await repository.enqueue_many(TENANT, [replace(task, type=TYPE) for task in new_tasks(count)])


async def _measure_kinds(repositories: Repositories, samples: int) -> Measured:
    """Milliseconds of each kind of reserve; the last finds nothing."""
    measured = {}
    for kind, (_, request) in KINDS.items():
        await repositories.topology.put_queue(TENANT, QUEUE, LIMITS.get(kind, QueueSettings()))
        if kind == "empty":
            while (await repositories.tasks.reserve_many([reserve_request(CHURNED_AT_ONCE)]))[0].tasks:
                pass
        else:
            await _enqueue(repositories.tasks, WARMUP_CALLS + samples)
        measured[f"{kind}_ms"] = await measure_reserve(repositories.tasks, samples, request)
    return measured


async def _measure(stage: Stage, *, held: bool) -> Measured:
    url = stage.databases.create("postgresql")
    async with opened_repositories(url, pool_size=4) as repositories:
        await _churn(repositories.tasks, 1000)
        async with (_held_snapshot if held else _no_snapshot)(url):
            await _churn(repositories.tasks, stage.form.churn_rows)
            return await _measure_kinds(repositories, stage.form.flat_samples)


def _prepare(stage: Stage) -> list[Contestant]:
    return [
        Contestant("without", lambda: asyncio.run(_measure(stage, held=False))),
        Contestant("under a held snapshot", lambda: asyncio.run(_measure(stage, held=True))),
    ]


def _claim(kind: str, what: str) -> Claim:
    text = f"{what} after rows churned under a held snapshot (20k in the quick form, else 100k), against without"
    return Claim(text, "snapshot", f"under a held snapshot.{kind}_ms", f"without.{kind}_ms", 2.0, at_least=False)


SNAPSHOT = Scenario(
    name="snapshot",
    title="Reserve after rows have churned under a held snapshot",
    prepare=_prepare,
    claims=[_claim(kind, what) for kind, (what, _) in KINDS.items()],
    shown=[f"{kind}_ms" for kind in KINDS],
)
