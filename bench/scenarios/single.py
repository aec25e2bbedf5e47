"""Single calls on PostgreSQL: enqueue, reserve and ack, a request each."""

from dataclasses import replace

from bench.direct.asyncpg_cycle import measure_asyncpg
from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage

CONNECTIONS = (64, 1, 256)
DIRECT_CONNECTIONS = 8


def _prepare(stage: Stage) -> list[Contestant]:
    batching = {mode: stage.start_service(settings={"MQ_BATCHING": mode}) for mode in ("on", "off")}
    over_http = [
        stage.cycle(f"batching {mode}, {connections}", service, replace(stage.plan, connections=connections))
        for connections in CONNECTIONS
        for mode, service in batching.items()
    ]
    url = stage.databases.create("postgresql")
    plan = replace(stage.plan, connections=DIRECT_CONNECTIONS)
    return [*over_http, Contestant("asyncpg, 8", lambda: {"cycles": measure_asyncpg(url, plan)})]


SINGLE = Scenario(
    name="single",
    title="Single-call full cycle on PostgreSQL, by connections",
    prepare=_prepare,
    claims=[
        Claim(
            "Single-call full cycle over HTTP, 64 connections, against `MQ_BATCHING=off`",
            "single", "batching on, 64.cycles", "batching off, 64.cycles", 3.0,
        ),
    ],
    shown=("cycles", "turn_p50_ms", "turn_p99_ms", "server_cores", "database_cores", "client_cores", "server_mib"),
)  # fmt: skip
