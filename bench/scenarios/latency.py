"""Latency at a fixed rate: calls start on time whether or not earlier ones have been answered."""

from dataclasses import replace

from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage

CONNECTIONS = 64
# Of what the service can do when callers wait for it.
PART_OF_CAPACITY = 0.5


def _contestant(stage: Stage, mode: str) -> Contestant:
    service = stage.start_service(settings={"MQ_BATCHING": mode})
    closed = replace(stage.plan, connections=CONNECTIONS)

    def measure() -> Measured:
        capacity = stage.generator.run(service.port, closed).per_second
        rate = max(1.0, capacity * PART_OF_CAPACITY)
        measured = stage.measure_load(service, replace(closed, connections=CONNECTIONS * 4, rate=rate))
        return {"rate": rate, **measured}

    return Contestant(f"batching {mode}", measure)


LATENCY = Scenario(
    name="latency",
    title="Latency at half of capacity, open loop",
    prepare=lambda stage: [_contestant(stage, mode) for mode in ("on", "off")],
    shown=(
        "rate", "enqueue_p50_ms", "enqueue_p99_ms", "reserve_p50_ms", "reserve_p99_ms", "ack_p50_ms", "ack_p99_ms",
        "turn_p50_ms", "turn_p99_ms",
    ),
)  # fmt: skip
