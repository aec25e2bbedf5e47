"""What is enqueued, and a loop of cycles that counts them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from app.domain.identifiers import new_task_id
from app.domain.task import NewTask, Payload

TENANT = "default"
QUEUE = "bench"
LEASE_SECONDS = 60.0
MAX_BYTES = 8 * 1024 * 1024
# The same bytes as the load generator sends.
PAYLOAD = b'{"to":"ada@example.com","template":"welcome","text":"0123456789012345678901234567890123456789"}'

# Takes a number of tasks through a cycle and returns how many came through.
Cycle = Callable[[int], Awaitable[int]]


def new_tasks(count: int, queue: str = QUEUE) -> list[NewTask]:
    """Tasks as the service makes them of requests."""
    payload = Payload(PAYLOAD, is_json=True, content_type="application/json")
    return [NewTask(new_task_id(), queue, queue, payload) for _ in range(count)]


async def cycles_per_second(cycles: Sequence[Cycle], batch: int, seconds: float, warmup_seconds: float) -> float:
    """Tasks a second when each of the cycles runs again and again, all at once."""
    window_from = time.monotonic() + warmup_seconds
    window_to = window_from + seconds

    async def repeat(cycle: Cycle) -> int:
        done = 0
        while time.monotonic() < window_to:
            tasks = await cycle(batch)
            done += tasks if window_from <= time.monotonic() < window_to else 0
        return done

    return sum(await asyncio.gather(*(repeat(cycle) for cycle in cycles))) / seconds
