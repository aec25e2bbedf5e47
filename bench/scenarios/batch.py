"""Batches of 100: enqueue, reserve and ack over HTTP on each database, and the same without HTTP."""

from dataclasses import replace

from bench.direct.asyncpg_cycle import measure_asyncpg
from bench.direct.repository_cycle import measure_repository
from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage

BATCH_SIZE = 100
CONNECTIONS = 8
HTTP = {"postgresql": "HTTP, PostgreSQL", "mysql": "HTTP, MySQL", "sqlite": "HTTP, SQLite"}


def _prepare(stage: Stage) -> list[Contestant]:
    plan = replace(stage.plan, connections=CONNECTIONS, batch=BATCH_SIZE)
    asyncpg_url, repository_url = stage.databases.create("postgresql"), stage.databases.create("postgresql")
    contestants = [
        Contestant("asyncpg, PostgreSQL", lambda: {"cycles": measure_asyncpg(asyncpg_url, plan)}),
        Contestant("repository, PostgreSQL", lambda: {"cycles": measure_repository(repository_url, plan)}),
    ]
    for dialect, name in HTTP.items():
        with stage.if_available(name):
            contestants.append(stage.cycle(name, stage.start_service(dialect), plan, dialect))
    return contestants


BATCH = Scenario(
    name="batch",
    title="Full cycle by batches of 100, 8 connections",
    prepare=_prepare,
    claims=[
        Claim(
            "Batch (100) full cycle over HTTP against the same statements by asyncpg, 8 connections",
            "batch", "HTTP, PostgreSQL.cycles", "asyncpg, PostgreSQL.cycles", 0.7,
        ),
        Claim(
            "MySQL batch full cycle against PostgreSQL's",
            "batch", "HTTP, MySQL.cycles", "HTTP, PostgreSQL.cycles", 0.4,
        ),
    ],
    shown=("cycles", "server_cores", "database_cores", "client_cores", "server_mib"),
)  # fmt: skip
