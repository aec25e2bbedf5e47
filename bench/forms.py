"""How long and how large a run is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlatSizes:
    """How much lies in the tables that a reserve should not notice."""

    small: int
    ready: int
    scheduled: int
    queues: int
    leased: int
    history: int


@dataclass(frozen=True, slots=True)
class Form:
    """The size of a run: `rounds` of measurements that last about `seconds` each."""

    name: str
    rounds: int
    seconds: float
    warmup_seconds: float
    backlog: int
    drain_tasks: int
    churn_rows: int
    pickup_samples: int
    flat_samples: int
    steady_seconds: float
    flat: FlatSizes


QUICK = Form(
    name="quick", rounds=2, seconds=1.0, warmup_seconds=0.3, backlog=5_000, drain_tasks=10_000, churn_rows=20_000,
    pickup_samples=20, flat_samples=30, steady_seconds=10.0,
    flat=FlatSizes(10_000, ready=100_000, scheduled=50_000, queues=1_000, leased=10_000, history=100_000),
)  # fmt: skip
DEFAULT = Form(
    name="default", rounds=3, seconds=3.0, warmup_seconds=0.7, backlog=20_000, drain_tasks=100_000, churn_rows=100_000,
    pickup_samples=50, flat_samples=100, steady_seconds=60.0,
    flat=FlatSizes(10_000, ready=500_000, scheduled=200_000, queues=10_000, leased=50_000, history=500_000),
)  # fmt: skip
FULL = Form(
    name="full", rounds=5, seconds=5.0, warmup_seconds=1.0, backlog=20_000, drain_tasks=100_000, churn_rows=100_000,
    pickup_samples=200, flat_samples=300, steady_seconds=600.0,
    flat=FlatSizes(10_000, ready=5_000_000, scheduled=1_000_000, queues=10_000, leased=100_000, history=10_000_000),
)  # fmt: skip
