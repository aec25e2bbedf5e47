"""`python -m tests.scale.limits`: what a queue without limits pays for them, against code that knows of none.

Both sides take turns in short rounds, so that a noisy moment falls on both; the ratio of each pair is looked at. They
send the same statements, so what can differ is the work of this process: it is told by itself too, and hardly depends
on who else is on the machine.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from unittest.mock import patch

from app.domain.queue import Queue
from app.repository import reserving
from app.repository.factory import connect_dialect, open_repositories
from app.repository.limiting import Allowance
from app.repository.schema import migrate
from app.repository.session import Session
from tests.conformance.steps import Store, ack_item, new_task
from tests.conformance.topology_steps import Topology
from tests.servers import Server, start_mysql, start_postgresql

ROUNDS = 60
CALLS = 40


async def allow_anything(session: Session, queues: Sequence[Queue], limit: int) -> Allowance:
    return Allowance(queues, {queue.id: limit for queue in queues}, {})


async def take_nothing(*arguments: object) -> None:
    pass


@contextmanager
def without_limits() -> Iterator[None]:
    """Reserve as if there were no limits at all."""
    with patch.object(reserving, "allow", allow_anything), patch.object(reserving, "take", take_nothing):
        yield


@dataclass(frozen=True)
class Speed:
    """Tasks that are reserved and acked, one by one: in a second, and in a second of this process's own work."""

    by_clock: float
    by_work: float


async def one_round(store: Store) -> Speed:
    await store.enqueue_many(*(new_task() for _ in range(CALLS)))
    clock, work = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        leased = await store.reserve_one()
        await store.repository.ack_many(store.tenant, [ack_item(leased)], None)
    return Speed(CALLS / (time.perf_counter() - clock), CALLS / (time.process_time() - work))


async def baseline(store: Store) -> Speed:
    with without_limits():
        return await one_round(store)


async def compare(what: str, one: Callable[[], Awaitable[Speed]], other: Callable[[], Awaitable[Speed]]) -> None:
    pairs: list[tuple[Speed, Speed]] = []
    for number in range(ROUNDS):
        # Who goes first takes turns too.
        if number % 2:
            pairs.append((await one(), await other()))
        else:
            speed = await other()
            pairs.append((await one(), speed))
    by_clock = tell([first.by_clock / second.by_clock for first, second in pairs])
    by_work = tell([first.by_work / second.by_work for first, second in pairs])
    print(f"  {what:<28}{by_clock} of the speed by the clock, {by_work} by its own work", flush=True)


def tell(ratios: list[float]) -> str:
    low, _, high = quantiles(ratios, n=4)
    return f"{median(ratios):.3f} (half of {ROUNDS} pairs {low:.2f} to {high:.2f})"


async def run(url: str) -> None:
    dialect = connect_dialect(url)
    await migrate(dialect)
    repositories = open_repositories(dialect, timeout_seconds=30)
    unlimited, limited = Store(repositories.tasks, "unlimited"), Store(repositories.tasks, "limited")
    await Topology(repositories.topology, "unlimited").put()
    await Topology(repositories.topology, "limited").put(concurrency_limit=100_000, rate_per_second=100_000)
    await one_round(unlimited)
    await compare("a queue without limits", lambda: one_round(unlimited), lambda: baseline(unlimited))
    await compare("the baseline against itself", lambda: baseline(unlimited), lambda: baseline(unlimited))
    await compare("a queue with both limits", lambda: one_round(limited), lambda: baseline(unlimited))
    await dialect.close()


def main() -> None:
    with ExitStack() as stack:
        urls = {}
        for name, start in {"postgresql": start_postgresql, "mysql": start_mysql}.items():
            server = start(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-"))))
            assert isinstance(server, Server), server
            stack.callback(server.close)
            urls[name] = server.create_database("limits")
        urls["sqlite"] = f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/limits.db"
        for name, url in urls.items():
            print(name, flush=True)
            asyncio.run(run(url))


if __name__ == "__main__":
    main()
