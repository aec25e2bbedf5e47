"""`python -m tests.scale.latency`: how soon a task that one replica takes reaches a worker that waits at another.

Two replicas on PostgreSQL. Times are printed, never judged.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from sqlalchemy import text

from app.repository.factory import connect_engine
from tests.servers import start_postgresql
from tests.service import Service
from tests.waiting.replica import Replica, replica_at

ROUNDS = 300
# Time enough for the one who waits to have looked in vain.
PAUSE_SECONDS = 0.05
END_BELLS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'leasemq bell'
"""


async def one_round(enqueuing: Replica, waiting: Replica) -> float:
    """The seconds from before the enqueue to when the worker has the task, which is then done."""
    wait = asyncio.create_task(waiting.reserve(wait_seconds=30))
    await asyncio.sleep(PAUSE_SECONDS)
    started = time.perf_counter()
    await enqueuing.enqueue()
    [task] = await wait
    taken = time.perf_counter() - started
    await waiting.settle("ack", task)
    return taken


Round = Callable[[], Awaitable[float]]


async def measure(rounds: Mapping[str, Round], times: int = ROUNDS) -> None:
    """Takes turns among what is measured, so that a noisy moment falls on all alike."""
    taken: dict[str, list[float]] = {what: [] for what in rounds}
    for _ in range(times):
        for what, round_ in rounds.items():
            taken[what].append(1000 * await round_())
    for what, each in taken.items():
        fast, *_, slow = quantiles(each, n=20)
        print(f"{what:<50}median {median(each):6.1f} ms, 5 % {fast:6.1f}, 95 % {slow:6.1f}, longest {max(each):7.1f}")


async def plain_enqueue(replica: Replica) -> float:
    """What an enqueue and a reserve take by themselves."""
    started = time.perf_counter()
    await replica.enqueue()
    [task] = await replica.reserve()
    taken = time.perf_counter() - started
    await replica.settle("ack", task)
    return taken


async def run(url: str, here: str, there: str) -> None:
    async with replica_at(here, "latency") as first, replica_at(there, "latency") as second:
        await measure(
            {
                "an enqueue, then a reserve: nobody waits": lambda: plain_enqueue(first),
                "somebody waits at the same replica": lambda: one_round(first, first),
                "somebody waits at the other replica": lambda: one_round(first, second),
            }
        )
        engine = connect_engine(url)
        async with engine.connect() as connection:
            ended = (await connection.execute(text(END_BELLS))).scalar_one()
        await engine.dispose()
        print(f"connections for LISTEN and NOTIFY ended: {ended}")
        await measure({"just after that, at the other replica": lambda: one_round(first, second)}, 20)
        await asyncio.sleep(6)
        await measure({"six seconds later, at the other replica": lambda: one_round(first, second)})


def main() -> None:
    poll = sys.argv[1] if len(sys.argv) > 1 else "0.25"
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-")))
        server = start_postgresql(directory)
        stack.callback(server.close)
        url = server.create_database("latency")
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        services = [Service(url, logs / f"{n}.log", {"MQ_WAIT_POLL_SECONDS": poll}) for n in range(2)]
        for service in services:
            stack.enter_context(service)
        asyncio.run(run(url, services[0].url, services[1].url))


if __name__ == "__main__":
    main()
