"""Single calls next to the peers, enqueue included, with tasks waiting on every side."""

from dataclasses import replace

from bench.peers.contestants import broker_peers, node_peer, python_peer
from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage

CALLERS = 64


def _leasemq(stage: Stage) -> Contestant:
    service = stage.start_service()
    stage.fill(service, "bench", stage.form.backlog)
    return stage.cycle("LeaseMQ", service, replace(stage.plan, connections=CALLERS))


def _prepare(stage: Stage) -> list[Contestant]:
    return [
        _leasemq(stage),
        python_peer(stage, "Procrastinate", "procrastinate_peer.py", "cycle"),
        python_peer(stage, "PgQueuer", "pgqueuer_peer.py", "cycle"),
        node_peer(stage, "graphile-worker", "graphile_worker_peer.mjs", "cycle"),
        node_peer(stage, "pg-boss", "pg_boss_peer.mjs", "cycle"),
        *broker_peers(stage),
    ]


def _claim(peer: str, required: float, how: str = "") -> Claim:
    text = f"Single-call full cycle over HTTP, 64 connections, against {peer}{how}"
    return Claim(text, "peers", "LeaseMQ.cycles", f"{peer}.cycles", required)


PEERS = Scenario(
    name="peers",
    title="Single calls against peers: enqueue, then process",
    prepare=_prepare,
    claims=[
        _claim("Procrastinate", 6.0),
        _claim("pg-boss", 20.0, " (single)"),
        _claim("graphile-worker", 2.0, "'s default worker"),
    ],
    shown=("cycles", "enqueue", "process"),
)
