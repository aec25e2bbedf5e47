"""Single calls on SQLite, which has one writer and syncs the disk at every commit."""

from dataclasses import replace

from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage


def _prepare(stage: Stage) -> list[Contestant]:
    plan = replace(stage.plan, connections=64)
    return [
        stage.cycle(f"batching {mode}", stage.start_service("sqlite", {"MQ_BATCHING": mode}), plan, "sqlite")
        for mode in ("on", "off")
    ]


SQLITE = Scenario(
    name="sqlite",
    title="Single-call full cycle on SQLite, 64 connections",
    prepare=_prepare,
    claims=[
        Claim(
            "SQLite single-call full cycle at 64 connections against one transaction a request",
            "sqlite", "batching on.cycles", "batching off.cycles", 8.0,
        ),
    ],
    shown=("cycles", "turn_p50_ms", "turn_p99_ms", "errors", "server_cores"),
)  # fmt: skip
