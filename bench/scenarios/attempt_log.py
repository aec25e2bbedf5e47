"""What it costs to log every attempt."""

from dataclasses import replace

from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage

BATCH_SIZE = 100


def _prepare(stage: Stage) -> list[Contestant]:
    single = replace(stage.plan, connections=64)
    batch = replace(stage.plan, connections=8, batch=BATCH_SIZE)
    services = {log: stage.start_service(settings={"MQ_ATTEMPT_LOG": log}) for log in ("all", "off")}
    return [
        stage.cycle(f"{form}, {log}", service, plan)
        for form, plan in (("single", single), ("batch", batch))
        for log, service in services.items()
    ]


def _claim(form: str, how: str) -> Claim:
    text = f"Attempt log `all` against `off`, {how}"
    return Claim(text, "attempt-log", f"{form}, all.cycles", f"{form}, off.cycles", 0.8)


ATTEMPT_LOG = Scenario(
    name="attempt-log",
    title="The attempt log",
    prepare=_prepare,
    claims=[_claim("single", "single calls, 64 connections"), _claim("batch", "batches of 100")],
)
