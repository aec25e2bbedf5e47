"""How the success of a second attempt depends on the time since the first one failed, and the backoff from that.

Only second attempts are compared: later ones come after longer delays and after more failures, and nobody could tell
which of the two it was.
"""

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from app.pipeline.advice.findings import BackoffAdvice, Confidence, DelayOutcome, LogSeen, QueueKey, QueuePolicy, Rescue
from app.pipeline.advice.frames import FAILURE, KEY, SUCCESS
from app.pipeline.advice.intervals import wilson
from app.pipeline.advice.wording import percent, seconds

# Each delay is counted in the span from one power of two to the next; what is under a second, in one.
SPAN_FACTOR = 2.0
FEWEST_IN_SPAN = 30
# A delay is long enough when it gives this share of what the best one gives.
GOOD_AS_BEST = 0.9
LOG_LACKS = {
    LogSeen.PARTIAL: "The log of attempts lacks many successes",
    LogSeen.FAILURES: "The log of attempts holds only failures",
    LogSeen.OFF: "There is no log of attempts",
}


def count_delays(attempts: DataFrame) -> dict[QueueKey, tuple[DelayOutcome, ...]]:
    """How second attempts ended, by queue and delay, shortest delay first.

    A lost lease makes the task available at once, so delays after one are not of anybody's choosing and left out.
    """
    first, second = F.col("attempt_no") == 1, F.col("attempt_no") == 2
    pairs = (
        attempts.where((first & (F.col("outcome") == FAILURE)) | (second & F.col("outcome").isin(SUCCESS, FAILURE)))
        .groupBy(*KEY, "task_id")
        .agg(
            F.count(F.when(first, 1)).alias("firsts"),
            F.count(F.when(second, 1)).alias("seconds"),
            F.max(F.when(first, F.col("finished"))).alias("failed"),
            F.max(F.when(second, F.col("started"))).alias("retried"),
            F.max(second & (F.col("outcome") == SUCCESS)).alias("succeeded"),
        )
        # An id that was used again, or a dead task that was requeued, has more than one of each.
        .where((F.col("firsts") == 1) & (F.col("seconds") == 1) & (F.col("retried") >= F.col("failed")))
    )
    span = F.floor(F.log2(F.greatest(F.col("retried") - F.col("failed"), F.lit(0.5))))
    rows = (
        pairs.groupBy(*KEY, span.alias("span"))
        .agg(F.count("*").alias("attempts"), F.sum(F.col("succeeded").cast("long")).alias("succeeded"))
        .orderBy(*KEY, "span")
        .collect()
    )
    delays: dict[QueueKey, tuple[DelayOutcome, ...]] = {}
    for row in rows:
        key = QueueKey(row.tenant_id, row.queue)
        delays[key] = (*delays.get(key, ()), delay_outcome(row.span, row.attempts, row.succeeded))
    return delays


def delay_outcome(span: int, attempts: int, succeeded: int) -> DelayOutcome:
    """The outcome of the delays from 2^span to 2^(span+1) seconds; span -1 begins at 0."""
    start = SPAN_FACTOR**span if span >= 0 else 0.0
    return DelayOutcome(start, SPAN_FACTOR ** (span + 1), attempts, succeeded, *wilson(succeeded, attempts))


def advise_backoff(
    delays: Sequence[DelayOutcome], rescues: Sequence[Rescue], log: LogSeen, policy: QueuePolicy
) -> BackoffAdvice:
    """A base of the backoff, where the data shows that the delay matters; else why there is none."""
    if log is LogSeen.UNKNOWN:
        return _none("No task is done yet: how success depends on the delay is not known.", delays)
    if log is not LogSeen.ALL:
        return _none(f"{LOG_LACKS[log]}: how success depends on the delay cannot be told.", delays)
    known = [delay for delay in delays if delay.attempts >= FEWEST_IN_SPAN]
    if not known:
        return _none(f"Too few second attempts to compare delays: {FEWEST_IN_SPAN} of a like delay are needed.", delays)
    best = max(known, key=lambda delay: delay.share)
    shortest = known[0]
    if shortest.high < best.low:
        return _longer(shortest, enough_delay(known), best, delays, policy)
    return _by_attempt(known, rescues, delays, policy)


def enough_delay(known: Sequence[DelayOutcome]) -> DelayOutcome:
    """The shortest delay that rescues nearly as many as the best."""
    best = max(delay.share for delay in known)
    return next(delay for delay in known if delay.share >= GOOD_AS_BEST * best)


def _longer(
    shortest: DelayOutcome,
    enough: DelayOutcome,
    best: DelayOutcome,
    delays: Sequence[DelayOutcome],
    policy: QueuePolicy,
) -> BackoffAdvice:
    base = max(1.0, enough.from_seconds)
    change = "is right" if base / SPAN_FACTOR < policy.backoff.base_seconds <= base * SPAN_FACTOR else "would do better"
    return BackoffAdvice(
        sentence=(
            f"A second attempt within {seconds(shortest.to_seconds)} of the failure succeeded in"
            f" {percent(shortest.share)} of cases, one after {seconds(enough.from_seconds)} or more in"
            f" {percent(enough.share)}: a backoff that begins at {seconds(base)} {change}"
            f" (it is {seconds(policy.backoff.base_seconds)})."
        ),
        confidence=Confidence.GOOD if enough.low > shortest.high else Confidence.LOW,
        caveats=("Delays also hold the wait for a free worker, and were not dealt out at random.",),
        base_seconds=base,
        delays=tuple(delays),
    )


def _by_attempt(
    known: Sequence[DelayOutcome], rescues: Sequence[Rescue], delays: Sequence[DelayOutcome], policy: QueuePolicy
) -> BackoffAdvice:
    """Those that are left after a failure are the harder ones; if more of them succeed, the time must have helped."""
    by_number = {rescue.attempt: rescue for rescue in rescues}
    second, third = by_number.get(2), by_number.get(3)
    if second is None or third is None or third.low <= second.high:
        return _none(_no_difference(known), delays)
    base = min(policy.backoff.base_seconds * policy.backoff.factor, policy.backoff.max_seconds)
    return BackoffAdvice(
        sentence=(
            f"Attempt 3 rescued {percent(third.share)} of the tasks that reached it, attempt 2 only"
            f" {percent(second.share)}: the longer delay seems to help, so let the backoff begin at {seconds(base)}"
            f" instead of {seconds(policy.backoff.base_seconds)}."
        ),
        confidence=Confidence.LOW,
        caveats=("Attempts 2 and 3 differ in more than their delay.",),
        base_seconds=base,
        delays=tuple(delays),
    )


def _no_difference(known: Sequence[DelayOutcome]) -> str:
    start, end = known[0].from_seconds, known[-1].to_seconds
    if len(known) == 1:
        return f"Second attempts came {seconds(start)} to {seconds(end)} after the failure: other delays were not seen."
    return f"Between {seconds(start)} and {seconds(end)} the delay made no difference to second attempts that shows."


def _none(sentence: str, delays: Sequence[DelayOutcome]) -> BackoffAdvice:
    return BackoffAdvice(sentence=sentence, confidence=Confidence.NONE, delays=tuple(delays))
