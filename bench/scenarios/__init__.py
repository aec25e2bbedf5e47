"""Every scenario, in the order in which they run."""

from bench.scenario import Scenario
from bench.scenarios.attempt_log import ATTEMPT_LOG
from bench.scenarios.batch import BATCH
from bench.scenarios.costs import COSTS
from bench.scenarios.drain import DRAIN
from bench.scenarios.flat import FLAT
from bench.scenarios.latency import LATENCY
from bench.scenarios.limits import LIMITS
from bench.scenarios.peers import PEERS
from bench.scenarios.pickup import PICKUP
from bench.scenarios.pollers import POLLERS
from bench.scenarios.route import ROUTE
from bench.scenarios.single import SINGLE
from bench.scenarios.snapshot import SNAPSHOT
from bench.scenarios.sqlite import SQLITE
from bench.scenarios.steady import STEADY
from bench.scenarios.workers import WORKERS

SCENARIOS: tuple[Scenario, ...] = (
    SINGLE, PEERS, BATCH, DRAIN, COSTS, ROUTE, FLAT, SNAPSHOT, ATTEMPT_LOG, SQLITE, PICKUP, LATENCY, POLLERS, LIMITS,
    WORKERS, STEADY,
)  # fmt: skip
