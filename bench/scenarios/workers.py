"""One server process, and two on the same port."""

from dataclasses import replace

from bench.scenario import Contestant, Scenario
from bench.stage import Stage


def _prepare(stage: Stage) -> list[Contestant]:
    single = replace(stage.plan, connections=64)
    return [
        stage.cycle(f"{workers} process{'es' * (workers > 1)}", stage.start_service(workers=workers), single)
        for workers in (1, 2)
    ]


WORKERS = Scenario(
    name="workers",
    title="Single-call full cycle by one and by two server processes, 64 connections",
    prepare=_prepare,
    shown=("cycles", "turn_p50_ms", "turn_p99_ms", "server_cores", "database_cores", "client_cores", "server_mib"),
)
