"""When the present backlog will be gone, in words."""

import math

from app.pipeline.advice.findings import Confidence, DrainForecast, Figure, QueuePolicy
from app.pipeline.advice.flows import FEWEST_BUSY_SPANS, SPAN_SECONDS, Flow
from app.pipeline.advice.wording import count, seconds, significant

# A forecast from less than an hour is a guess.
FEWEST_SPANS = 12


def forecast_drain(flow: Flow | None, policy: QueuePolicy) -> DrainForecast:
    """The forecast for one queue of a live database; one without a flow has nothing waiting."""
    if flow is None or flow.backlog == 0:
        later = 0 if flow is None else flow.later
        return DrainForecast(
            sentence="Nothing waits now.", confidence=Confidence.GOOD, caveats=_later(later), backlog=0,
            soonest_seconds=0.0, likely_seconds=0.0, latest_seconds=0.0,
        )  # fmt: skip
    never = policy.paused or math.isinf(flow.likely)
    return DrainForecast(
        sentence=_sentence(flow, policy),
        confidence=_confidence(flow),
        evidence=_evidence(flow),
        caveats=_caveats(flow, policy),
        backlog=flow.backlog,
        never=never,
        soonest_seconds=None if policy.paused else _finite(flow.soonest),
        likely_seconds=None if never else flow.likely,
        latest_seconds=None if never else _finite(flow.latest),
    )


def unknown_drain() -> DrainForecast:
    """Without a live database nobody knows what waits."""
    return DrainForecast(
        sentence="What waits now is known only with a live database.", confidence=Confidence.NONE, backlog=None
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def _confidence(flow: Flow) -> Confidence:
    seen = flow.spans >= FEWEST_SPANS and flow.busy_spans >= FEWEST_BUSY_SPANS
    return Confidence.GOOD if seen else Confidence.LOW


def _sentence(flow: Flow, policy: QueuePolicy) -> str:
    waiting = count(flow.backlog, "task waits or runs", "tasks wait or run")
    if policy.paused:
        return f"{waiting}, and the queue is paused: never, until it is resumed."
    if flow.capacity == 0:
        return f"{waiting}, and nothing was finished lately: at this rate never."
    rates = f"{rate(flow.arrivals)} arrive and {rate(flow.capacity)} can be finished"
    if math.isinf(flow.likely):
        hope = "" if math.isinf(flow.soonest) else f", or at best in {seconds(flow.soonest)}"
        return f"{waiting}; {rates}: at these rates the backlog never ends{hope}."
    return f"{waiting}; {rates}: gone in about {seconds(flow.likely)}{_range(flow)}."


def _range(flow: Flow) -> str:
    """The range, unless it is too narrow to be told."""
    soonest, latest = seconds(flow.soonest), "never" if math.isinf(flow.latest) else seconds(flow.latest)
    return "" if soonest == latest else f" (between {soonest} and {latest})"


def rate(per_second: float) -> str:
    """A rate in the largest unit that gives a whole task."""
    for unit, length in (("a second", 1.0), ("a minute", 60.0), ("an hour", 3600.0)):
        if per_second * length >= 1:
            return f"{significant(per_second * length)} {unit}"
    return f"{significant(per_second * 86400.0)} a day"


def _caveats(flow: Flow, policy: QueuePolicy) -> tuple[str, ...]:
    caveats = []
    if flow.busy_spans < FEWEST_BUSY_SPANS:
        caveats.append("The workers were hardly ever busy all along: they may be able to do more than was seen.")
    if flow.spans < FEWEST_SPANS:
        caveats.append(f"This rests on the last {seconds(flow.spans * SPAN_SECONDS)} alone.")
    if policy.is_limited:
        caveats.append("The queue has a limit of rate or concurrency: more workers may not make it faster.")
    return (*caveats, *_later(flow.later))


def _later(later: int) -> tuple[str, ...]:
    return (f"{count(later, 'task is', 'tasks are')} due later and not counted.",) if later else ()


def _evidence(flow: Flow) -> tuple[Figure, ...]:
    return (
        Figure("backlog", flow.backlog, "tasks"),
        Figure("arrive", flow.arrivals, "tasks/s"),
        Figure("leave", flow.left, "tasks/s"),
        Figure("can be finished", flow.capacity, "tasks/s"),
    )
