"""Procrastinate: single defers, then a worker of many jobs at once; finished jobs are kept."""

import asyncio
from contextlib import suppress

import procrastinate
import psycopg
from turns import ANALYZE, PAYLOAD, Count, Options, calls_per_second, read_options, report

DEFERRED_AT_ONCE = 1000


def _app(options: Options) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(
        conninfo=options.url, min_size=options.connections, max_size=options.connections
    )
    return procrastinate.App(connector=connector)


async def _analyze(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(ANALYZE)


async def _work(app: procrastinate.App, options: Options) -> None:
    """Work for the time of the measurement, with some more to get going."""
    with suppress(asyncio.TimeoutError, TimeoutError):
        await asyncio.wait_for(
            app.run_worker_async(wait=False, concurrency=options.callers, install_signal_handlers=False),
            options.seconds + 1,
        )


async def main(options: Options) -> None:
    """Measure enqueue and process."""
    app, count = _app(options), Count(options.seconds)

    @app.task(name="bench", queue="bench")
    async def bench(**payload: str) -> None:
        count.add()

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        for _ in range(0, options.backlog, DEFERRED_AT_ONCE):
            await bench.batch_defer_async(*[PAYLOAD] * DEFERRED_AT_ONCE)
        await _analyze(options.url)
        enqueue = await calls_per_second(lambda: bench.defer_async(**PAYLOAD), options.callers, options.seconds)
        await _work(app, options)
    report(enqueue=enqueue, process=count.per_second())


if __name__ == "__main__":
    asyncio.run(main(read_options()))
