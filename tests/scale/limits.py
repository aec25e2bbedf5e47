"""`python -m tests.scale.limits`: what a queue without limits pays for them, against code that knows of none.

Both sides take turns in short rounds, so that a noisy moment falls on both; the ratio of each pair is looked at.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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


async def one_round(store: Store) -> float:
    """So many tasks a second are reserved and acked, one by one."""
    await store.enqueue_many(*(new_task() for _ in range(CALLS)))
    started = time.perf_counter()
    for _ in range(CALLS):
        leased = await store.reserve_one()
        await store.repository.ack_many(store.tenant, [ack_item(leased)], None)
    return CALLS / (time.perf_counter() - started)


async def baseline(store: Store) -> float:
    with without_limits():
        return await one_round(store)


async def ratios(one: Callable[[], Awaitable[float]], other: Callable[[], Awaitable[float]]) -> list[float]:
    found = []
    for number in range(ROUNDS):
        # Who goes first takes turns too.
        first, second = (one, other) if number % 2 else (other, one)
        speeds = [await first(), await second()]
        found.append(speeds[0] / speeds[1] if number % 2 else speeds[1] / speeds[0])
    return found


def tell(what: str, found: list[float]) -> None:
    low, _, high = quantiles(found, n=4)
    print(f"  {what:<40}{median(found):.3f} of the speed (half of the pairs {low:.3f} to {high:.3f})", flush=True)


async def run(url: str) -> None:
    dialect = connect_dialect(url)
    await migrate(dialect)
    repositories = open_repositories(dialect, timeout_seconds=30)
    unlimited, limited = Store(repositories.tasks, "unlimited"), Store(repositories.tasks, "limited")
    await Topology(repositories.topology, "unlimited").put()
    await Topology(repositories.topology, "limited").put(concurrency_limit=100_000, rate_per_second=100_000)
    await one_round(unlimited)
    tell("a queue without limits", await ratios(lambda: one_round(unlimited), lambda: baseline(unlimited)))
    tell("the same against itself", await ratios(lambda: baseline(unlimited), lambda: baseline(unlimited)))
    tell("a queue with both limits", await ratios(lambda: one_round(limited), lambda: baseline(unlimited)))
    await dialect.engine.dispose()


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
