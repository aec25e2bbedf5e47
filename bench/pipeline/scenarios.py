"""Every scenario, in the order in which they run: memory is measured in a session that has done nothing else."""

from bench.pipeline.archiving import ARCHIVING, GROWING
from bench.pipeline.enqueueing import ENQUEUEING
from bench.pipeline.reading import READING
from bench.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (GROWING, READING, ARCHIVING, ENQUEUEING)
