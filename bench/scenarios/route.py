"""The hot routes on a service that does nothing, next to a bare ASGI application that answers with the same JSON."""

from dataclasses import replace

from bench.ratios import Claim
from bench.route.documents import REQUESTS
from bench.route.serving import start_asgi
from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage

CONNECTIONS = 64
APPLICATIONS = {"LeaseMQ": "bench.route.noop_application:create_app", "bare ASGI": "bench.route.echo:create_app"}


def _contestant(stage: Stage, name: str, port: int, route: str) -> Contestant:
    request = REQUESTS[route]
    plan = replace(stage.plan, steps="X", connections=CONNECTIONS, path=request.path, body=request.body.decode())

    def measure() -> Measured:
        load = stage.generator.run(port, plan)
        return {"requests": load.per_second, "client_cores": load.cores}

    return Contestant(f"{name}, {route}", measure)


def _prepare(stage: Stage) -> list[Contestant]:
    ports = {name: start_asgi(target, stage.stack, stage.directory) for name, target in APPLICATIONS.items()}
    return [_contestant(stage, name, port, route) for route in REQUESTS for name, port in ports.items()]


def _claim(route: str) -> Claim:
    text = f"Hot route ({route}) with a no-op service against a bare ASGI application with the same JSON"
    return Claim(text, "route", f"LeaseMQ, {route}.requests", f"bare ASGI, {route}.requests", 0.6)


ROUTE = Scenario(
    name="route",
    title="Hot routes without a database",
    prepare=_prepare,
    claims=[_claim(route) for route in REQUESTS],
    shown=("requests", "client_cores"),
)
