"""Every scenario, in the order in which they run."""

from bench.pipeline.archiving import ARCHIVING, GROWING
from bench.pipeline.enqueueing import ENQUEUEING
from bench.pipeline.reading import READING
from bench.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (READING, ARCHIVING, GROWING, ENQUEUEING)
