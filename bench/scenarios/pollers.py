"""The cycle while many others wait for work."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from bench.load import Plan
from bench.load.generator import finish
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage, load_figures
from tests.service import Service

IDLE_POLLERS = 200
WORKERS = 32
PRODUCERS = 32


@contextmanager
def _idle_pollers(stage: Stage, service: Service) -> Iterator[subprocess.Popen[str]]:
    """Callers who wait on a queue in which nothing comes."""
    plan = Plan(steps="RA", queue="idle", connections=IDLE_POLLERS, wait_seconds=20.0, seconds=600.0)
    with stage.generator.start(service.port, plan) as process:
        try:
            yield process
        finally:
            process.kill()


def _measure_beside_pollers(stage: Stage, service: Service) -> Measured:
    with _idle_pollers(stage, service):
        return stage.measure_load(service, replace(stage.plan, connections=64))


def _measure_handing_over(stage: Stage, service: Service) -> Measured:
    """Producers and waiting workers: tasks a second that come through."""
    work = replace(stage.plan, steps="RA", queue="handed", connections=WORKERS, wait_seconds=5.0)
    produce = replace(stage.plan, steps="E", queue="handed", connections=PRODUCERS)
    with stage.generator.start(service.port, work) as workers:
        produced = stage.generator.run(service.port, produce)
        done = finish(workers, work)
    return {**load_figures(done), "produced": produced.per_second}


def _prepare(stage: Stage) -> list[Contestant]:
    service = stage.start_service()
    return [
        stage.cycle("cycle alone, 64", service, replace(stage.plan, connections=64)),
        Contestant(f"cycle beside {IDLE_POLLERS} who wait", lambda: _measure_beside_pollers(stage, service)),
        Contestant(f"{PRODUCERS} producers, {WORKERS} waiting workers", lambda: _measure_handing_over(stage, service)),
    ]


POLLERS = Scenario(
    name="pollers",
    title="Mixed with callers who wait for work",
    prepare=_prepare,
    shown=("cycles", "produced", "turn_p50_ms", "turn_p99_ms", "server_cores"),
)
