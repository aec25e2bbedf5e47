"""A queue without limits, in a database without any limit and in one where other queues have them."""

from dataclasses import replace

import httpx

from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage
from tests.service import Service

LIMITED_QUEUES = 50
LIMITED = {"rate_per_second": 10, "concurrency_limit": 5}


def _declare(service: Service, name: str, settings: dict[str, int]) -> None:
    httpx.put(f"{service.url}/v1/queues/{name}", json=settings).raise_for_status()


def _prepare(stage: Stage) -> list[Contestant]:
    alone, beside = stage.start_service(), stage.start_service()
    for service in (alone, beside):
        _declare(service, "bench", {})
    for number in range(LIMITED_QUEUES):
        _declare(beside, f"limited-{number}", LIMITED)
    plan = replace(stage.plan, connections=64)
    return [stage.cycle("no limits", alone, plan), stage.cycle(f"{LIMITED_QUEUES} limited queues", beside, plan)]


LIMITS = Scenario(
    name="limits",
    title="An unlimited queue next to limited ones",
    prepare=_prepare,
    claims=[
        Claim(
            "Single-call full cycle on a queue without limits, with limits on other queues against without",
            "limits", f"{LIMITED_QUEUES} limited queues.cycles", "no limits.cycles", 0.95,
        ),
    ],
)  # fmt: skip
