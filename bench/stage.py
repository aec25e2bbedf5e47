"""Where scenarios play: servers, services, peers and the load generator, started when asked for."""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg

from bench.databases import Databases
from bench.forms import Form
from bench.load import Generator, Load, Plan
from bench.peers.workshop import Workshop
from bench.scenario import CannotMeasureError, Contestant, Measured
from bench.usage import Usage, usage_of_all
from tests.service import Service

SERVICE_SETTINGS = {"MQ_ATTEMPT_LOG": "failures", "MQ_BATCHING": "on", "MQ_LOG_LEVEL": "warning"}


class Stage:
    """What one scenario may use; services end with the scenario, database servers with the run."""

    def __init__(
        self, form: Form, databases: Databases, generator: Generator, workshop: Workshop, stack: ExitStack
    ) -> None:
        self.form = form
        self.databases = databases
        self.generator = generator
        self.workshop = workshop
        self.stack = stack
        self.plan = Plan(seconds=form.seconds, warmup_seconds=form.warmup_seconds)
        self.directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leasemq-bench-")))
        self.notes: list[str] = []
        self._services = 0

    @contextmanager
    def if_available(self, name: str) -> Iterator[None]:
        """Go on without what cannot be had here, and note why."""
        try:
            yield
        except CannotMeasureError as error:
            self.notes.append(f"{name} is left out: {error}")

    def start_service(
        self,
        dialect: str = "postgresql",
        settings: Mapping[str, str] | None = None,
        *,
        url: str | None = None,
        workers: int = 1,
    ) -> Service:
        """Start LeaseMQ on a database of its own, or on the one that is named."""
        self._services += 1
        service = Service(
            url or self.databases.create(dialect),
            self.directory / f"service-{self._services}.log",
            {**SERVICE_SETTINGS, **(settings or {})},
            ["--workers", str(workers)],
        )
        self.stack.enter_context(service)
        # Asked to, a server with several processes ends them all.
        self.stack.callback(service.terminate)
        return service

    def fill(self, service: Service, queue: str, tasks: int) -> None:
        """Enqueue so many tasks on PostgreSQL, by hundreds, and let the planner know of them."""
        fill = Plan(steps="E", queue=queue, connections=4, batch=100, total=tasks, seconds=600)
        self.generator.run(service.port, fill)
        asyncio.run(_analyze(service.database_url))

    def cycle(self, name: str, service: Service, plan: Plan, dialect: str = "postgresql") -> Contestant:
        """A contestant that puts the load on the service and counts what it costs each process."""
        return Contestant(name, lambda: self.measure_load(service, plan, dialect))

    def measure_load(self, service: Service, plan: Plan, dialect: str = "postgresql") -> Measured:
        """The rate and the latencies of a load, and what it took of the machine."""
        server_before, database_before = self._usages(service, dialect)
        started_at = time.monotonic()
        load = self.generator.run(service.port, plan)
        seconds = time.monotonic() - started_at
        server, database = self._usages(service, dialect)
        return {
            **load_figures(load),
            "server_cores": (server.cpu_seconds - server_before.cpu_seconds) / seconds,
            "database_cores": (database.cpu_seconds - database_before.cpu_seconds) / seconds,
            "server_mib": server.memory_mib,
            "database_mib": database.memory_mib,
        }

    def _usages(self, service: Service, dialect: str) -> tuple[Usage, Usage]:
        return usage_of_all([service.pid]), usage_of_all(self.databases.pids(dialect))


async def _analyze(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


def load_figures(load: Load) -> dict[str, float]:
    """The figures of a load by name, latencies in milliseconds."""
    latencies = {
        f"{step}_{quantile}_ms": seconds * 1000
        for step, quantiles in load.latencies.items()
        for quantile, seconds in quantiles.items()
    }
    return {"cycles": load.per_second, "errors": float(load.errors), "client_cores": load.cores, **latencies}
