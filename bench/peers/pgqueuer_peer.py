"""PgQueuer: single enqueues, and a worker that drains the queue by batches."""

import asyncio
import json
import time

import asyncpg
from pgqueuer import AsyncpgPoolDriver, Job, PgQueuer
from pgqueuer.types import QueueExecutionMode
from turns import ANALYZE, PAYLOAD, Options, calls_per_second, read_options, report

ENQUEUED_AT_ONCE = 1000
DATA = json.dumps(PAYLOAD).encode()


async def _drain(queue: PgQueuer, batch: int) -> float:
    """Process all there is; how many a second."""
    done = 0

    @queue.entrypoint("bench")
    async def bench(job: Job) -> None:
        nonlocal done
        done += 1

    started_at = time.monotonic()
    await queue.run(mode=QueueExecutionMode.drain, batch_size=batch)
    return done / (time.monotonic() - started_at)


async def main(options: Options) -> None:
    """Measure enqueue and process, or a drain alone."""
    async with asyncpg.create_pool(options.url, min_size=options.connections, max_size=options.connections) as pool:
        queue = PgQueuer(AsyncpgPoolDriver(pool))
        if not await queue.qm.queries.schema_is_installed():
            await queue.qm.queries.install()
        queries, many = queue.qm.queries, ENQUEUED_AT_ONCE
        for _ in range(0, options.backlog, many):
            await queries.enqueue(["bench"] * many, [DATA] * many, [0] * many)
        await pool.execute(ANALYZE)
        if options.mode == "drain":
            report(process=await _drain(queue, options.batch))
            return
        enqueue = await calls_per_second(lambda: queries.enqueue("bench", DATA), options.callers, options.seconds)
        report(enqueue=enqueue, process=await _drain(queue, options.batch))


if __name__ == "__main__":
    asyncio.run(main(read_options()))
