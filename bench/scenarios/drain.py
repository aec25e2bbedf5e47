"""A filled queue is emptied by 100 a call, next to the peers at their best."""

from dataclasses import replace

from bench.peers.contestants import node_peer, python_peer
from bench.ratios import Claim
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage

BATCH_SIZE = 100
# Of 48 to 96 none serves LeaseMQ better than the others here, and fewer do worse.
CONNECTIONS = 56


def _leasemq(stage: Stage) -> Contestant:
    service = stage.start_service()
    plan = replace(
        stage.plan, steps="RA", connections=CONNECTIONS, batch=BATCH_SIZE, seconds=600.0, warmup_seconds=0.0,
        stop_when_empty=True,
    )  # fmt: skip

    def measure() -> Measured:
        stage.fill(service, plan.queue, stage.form.drain_tasks)
        measured = dict(stage.measure_load(service, plan))
        return {"process": measured.pop("cycles"), **measured}

    return Contestant("LeaseMQ", measure)


def _prepare(stage: Stage) -> list[Contestant]:
    tasks = stage.form.drain_tasks
    return [
        _leasemq(stage),
        python_peer(stage, "PgQueuer", "pgqueuer_peer.py", "drain", tasks),
        node_peer(stage, "graphile-worker", "graphile_worker_peer.mjs", "drain", tasks),
        node_peer(stage, "pg-boss", "pg_boss_peer.mjs", "drain", tasks),
    ]


DRAIN = Scenario(
    name="drain",
    title="Drain of a filled queue, by 100",
    prepare=_prepare,
    claims=[
        Claim(
            "Drain of a filled queue (reserve and ack by 100 over HTTP) against PgQueuer's drain",
            "drain", "LeaseMQ.process", "PgQueuer.process", 2.5,
        ),
        Claim(
            "Drain of a filled queue against graphile-worker at its best",
            "drain", "LeaseMQ.process", "graphile-worker.process", 1.2,
        ),
    ],
    shown=("process", "server_cores", "database_cores", "client_cores"),
)  # fmt: skip
