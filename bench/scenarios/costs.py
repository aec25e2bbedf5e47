"""What a task costs the processors, step by step, when its calls come by 100: where the time of a drain goes."""

from dataclasses import replace
from functools import partial

from bench.scenario import Contestant, Measured, Scenario
from bench.stage import Stage
from tests.service import Service

BATCH_SIZE = 100
CONNECTIONS = 8
DIALECTS = {"postgresql": "PostgreSQL", "mysql": "MySQL"}


def _measure(stage: Stage, service: Service, dialect: str) -> Measured:
    """Processor time of the service and of the database, in microseconds a task."""
    plan = replace(stage.plan, connections=CONNECTIONS, batch=BATCH_SIZE, seconds=600.0, warmup_seconds=0.0)
    fill = replace(plan, steps="E", total=stage.form.drain_tasks)
    steps = {
        "enqueue": fill,
        "reserve_and_ack": replace(plan, steps="RA", stop_when_empty=True),
        "again": fill,
        # What is leased here stays leased: the scenario has a database of its own.
        "reserve": replace(plan, steps="R", stop_when_empty=True),
    }
    measured = {step: stage.measure_load(service, of_step, dialect) for step, of_step in steps.items()}
    costs = {
        f"{step}_{side}_us": measured[step][f"{side}_cores"] / measured[step]["cycles"] * 1e6
        for step in ("enqueue", "reserve", "reserve_and_ack")
        for side in ("server", "database")
    }
    acks = {
        f"ack_{side}_us": costs[f"reserve_and_ack_{side}_us"] - costs[f"reserve_{side}_us"]
        for side in ("server", "database")
    }
    return {**costs, **acks}


def _prepare(stage: Stage) -> list[Contestant]:
    contestants = []
    for dialect, name in DIALECTS.items():
        with stage.if_available(name):
            service = stage.start_service(dialect)
            contestants.append(Contestant(name, partial(_measure, stage, service, dialect)))
    return contestants


COSTS = Scenario(
    name="costs",
    title="Processor time by step, calls by 100: microseconds a task",
    prepare=_prepare,
    shown=(
        "enqueue_server_us", "enqueue_database_us", "reserve_server_us", "reserve_database_us", "ack_server_us",
        "ack_database_us",
    ),
)  # fmt: skip
