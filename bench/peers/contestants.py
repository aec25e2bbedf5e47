"""The peers as contestants."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bench.peers.brokers import Broker, start_beanstalkd, start_rabbitmq
from bench.scenario import Contestant, Measured

if TYPE_CHECKING:
    from bench.stage import Stage

# As many callers and database connections as LeaseMQ has.
CALLERS = 64
CONNECTIONS = 10
BATCH_SIZE = 100
# A broker does not get slower by what waits, and filling it by single messages takes long.
BROKER_BACKLOG = 1000


def python_peer(stage: "Stage", name: str, program: str, mode: str, backlog: int | None = None) -> Contestant:
    """A peer in Python, on a database of its own."""
    arguments = partial(_arguments, stage, mode, stage.form.backlog if backlog is None else backlog)
    return _peer(stage, name, lambda url: stage.workshop.run_python(program, arguments(url)))


def node_peer(stage: "Stage", name: str, program: str, mode: str, backlog: int | None = None) -> Contestant:
    """A peer in Node.js, on a database of its own."""
    arguments = partial(_arguments, stage, mode, stage.form.backlog if backlog is None else backlog)
    return _peer(stage, name, lambda url: stage.workshop.run_node(program, arguments(url)))


def broker_peers(stage: "Stage") -> list[Contestant]:
    """The brokers that Debian has, as far as they can be had here."""
    contestants: list[Contestant] = []
    with stage.if_available("beanstalkd"):
        contestants.append(_broker_peer(stage, "beanstalkd", start_beanstalkd(stage.stack), "beanstalkd_peer.py"))
    with stage.if_available("RabbitMQ"):
        rabbitmq = start_rabbitmq(stage.stack)
        contestants.append(_broker_peer(stage, "RabbitMQ, AMQP", rabbitmq, "rabbitmq_amqp_peer.py"))
        contestants.append(_broker_peer(stage, "RabbitMQ, HTTP", rabbitmq, "rabbitmq_http_peer.py"))
    return contestants


def _peer(stage: "Stage", name: str, run: Callable[[str], Measured]) -> Contestant:
    return Contestant(name, lambda: with_cycles(run(stage.databases.create("postgresql"))))


def _broker_peer(stage: "Stage", name: str, broker: Broker, program: str) -> Contestant:
    arguments = _arguments(stage, "cycle", BROKER_BACKLOG, broker.url)
    return Contestant(name, lambda: with_cycles(stage.workshop.run_python(program, arguments)))


def _arguments(stage: "Stage", mode: str, backlog: int, url: str) -> list[str]:
    options = {
        "url": url, "seconds": stage.form.seconds, "callers": CALLERS, "connections": CONNECTIONS,
        "backlog": backlog, "batch": BATCH_SIZE,
    }  # fmt: skip
    return [mode, *(part for name, value in options.items() for part in (f"--{name}", str(value)))]


def with_cycles(measured: Measured) -> Measured:
    """Add the rate of whole cycles: a task is enqueued, and then processed."""
    if "enqueue" not in measured:
        return measured
    seconds_a_task = sum(1 / measured[phase] for phase in ("enqueue", "process") if measured[phase] > 0)
    return {**measured, "cycles": 1 / seconds_a_task if seconds_a_task else 0.0}
