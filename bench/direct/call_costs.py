"""What single calls of the repository cost, one at a time."""

import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import TypeVar

from app.domain.commands import AckItem, ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.repository.protocol import Repository
from bench.direct.repository_cycle import opened_repository, reserve_request
from bench.direct.workload import TENANT, new_tasks
from bench.scenario import Measured

WARMUP_CALLS = 10

Result = TypeVar("Result")


class Stopwatch:
    """The times of calls by name."""

    def __init__(self) -> None:
        self._milliseconds: dict[str, list[float]] = {}

    async def time(self, name: str, call: Callable[[], Awaitable[Result]]) -> Result:
        """Make the call and keep how long it took."""
        started_at = time.perf_counter()
        result = await call()
        self._milliseconds.setdefault(name, []).append((time.perf_counter() - started_at) * 1000)
        return result

    def medians(self) -> dict[str, float]:
        """The median of each, without the first calls."""
        return {f"{name}_ms": median(times[WARMUP_CALLS:]) for name, times in self._milliseconds.items()}


async def measure_call_costs(database_url: str, samples: int) -> Measured:
    """Milliseconds of an enqueue, a reserve and an ack of one task."""
    stopwatch = Stopwatch()
    async with opened_repository(database_url, pool_size=1) as repository:
        for _ in range(WARMUP_CALLS + samples):
            await stopwatch.time("enqueue", lambda: repository.enqueue_many(TENANT, new_tasks(1)))
            [reserved] = await stopwatch.time("reserve", lambda: repository.reserve_many([reserve_request(1)]))
            [lease] = reserved.tasks
            item = AckItem(lease.task.id, lease_token_hash(lease.lease_token))
            await stopwatch.time("ack", lambda item=item: repository.ack_many(TENANT, [item]))  # type: ignore[misc]
    return stopwatch.medians()


async def measure_reserve(repository: Repository, samples: int, request: ReserveRequest) -> float:
    """Milliseconds of a reserve."""
    stopwatch = Stopwatch()
    for _ in range(WARMUP_CALLS + samples):
        await stopwatch.time("reserve", lambda: repository.reserve_many([request]))
    return stopwatch.medians()["reserve_ms"]
