"""What each attempt was worth: a life table of tasks, and the limit of attempts that follows from it.

A task that is done says at which attempt it succeeded, so this needs no log of attempts.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from app.domain.task import LIVE_STATUSES, Status
from app.pipeline.advice.findings import AttemptsAdvice, Confidence, Figure, QueueKey, QueuePolicy, Rescue
from app.pipeline.advice.frames import KEY
from app.pipeline.advice.intervals import wilson
from app.pipeline.advice.wording import count, percent

# Attempts beyond are counted as this one: tasks without a limit may have had thousands.
LAST_ATTEMPT = 100
# An attempt that rescues fewer of those that reach it mostly costs.
WORTH = 0.05
# What fewer tasks reached says nothing about an attempt.
FEWEST_REACHED = 30
ENOUGH_REACHED = 300
# So many more attempts are tried where even the last one still rescued.
MORE_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Ending:
    """How many tasks are in one state after so many attempts."""

    status: str
    attempts: int
    tasks: int


def count_endings(tasks: DataFrame) -> dict[QueueKey, list[Ending]]:
    """The tasks of each queue that were leased at all, by status and attempts.

    Dead letters may be kept for ever and history is not: those from before the queue's history are left out, since
    they would be compared with successes that nobody knows of any more.
    """
    begun = tasks.where((F.col("attempts") > 0) & ~F.col("status").isin(Status.DEAD.value, *LIVE_STATUSES))
    since = begun.groupBy(*KEY).agg(F.min("ended").alias("since"))
    known = tasks.join(F.broadcast(since), list(KEY), "left").where(
        (F.col("attempts") > 0)
        & ((F.col("status") != Status.DEAD.value) | F.col("since").isNull() | (F.col("ended") >= F.col("since")))
    )
    rows = (
        known.groupBy(*KEY, "status", F.least("attempts", F.lit(LAST_ATTEMPT)).alias("attempts"))
        .agg(F.count("*").alias("tasks"))
        .collect()
    )
    endings: dict[QueueKey, list[Ending]] = {}
    for row in rows:
        endings.setdefault(QueueKey(row.tenant_id, row.queue), []).append(Ending(row.status, row.attempts, row.tasks))
    return endings


def tasks_done(endings: Iterable[Ending]) -> int:
    return sum(ending.tasks for ending in endings if ending.status == Status.DONE)


def life_table(endings: Iterable[Ending]) -> tuple[Rescue, ...]:
    """How many tasks ended attempt n, and how many of them by success, for each n that was reached.

    A task counts for the attempts whose outcome is known. The one that runs now, or was perhaps cut short by a cancel,
    is left out, and so is every attempt that a task never had, because it died before or still waits.
    """
    reached: Counter[int] = Counter()
    rescued: Counter[int] = Counter()
    for ending in endings:
        open_end = ending.status in (Status.LEASED, Status.CANCELLED)
        for attempt in range(1, ending.attempts + (0 if open_end else 1)):
            reached[attempt] += ending.tasks
        if ending.status == Status.DONE:
            rescued[ending.attempts] += ending.tasks
    return tuple(_rescue(attempt, reached[attempt], rescued[attempt]) for attempt in sorted(reached))


def last_worthwhile(rescues: Iterable[Rescue]) -> int:
    """The last attempt that is not shown to rescue too few; at least the first, which is none to save on."""
    return max((rescue.attempt for rescue in rescues if _is_known(rescue) and rescue.high >= WORTH), default=1)


def advise_attempts(endings: Iterable[Ending], policy: QueuePolicy) -> AttemptsAdvice:
    """A limit of attempts: those that rescue, and none that only cost."""
    rescues = life_table(endings)
    retries = [rescue for rescue in rescues if rescue.attempt > 1 and _is_known(rescue)]
    if not retries:
        return AttemptsAdvice(
            sentence=_too_few(rescues), confidence=Confidence.NONE, evidence=_evidence(rescues), rescues=rescues
        )
    if not any(rescue.rescued for rescue in rescues):
        return AttemptsAdvice(
            sentence=_hopeless(rescues), confidence=Confidence.NONE, evidence=_evidence(rescues), rescues=rescues
        )
    best, last = last_worthwhile(rescues), retries[-1]
    if best < last.attempt:
        limit, sentence = best, _costly(rescues, best)
    elif last.low >= WORTH and _is_limit(last, rescues, policy):
        limit, sentence = last.attempt + MORE_ATTEMPTS, _hopeful(last)
    else:
        limit = _kept(last, policy)
        sentence = _useful(last, limit)
    return AttemptsAdvice(
        sentence=sentence,
        confidence=Confidence.GOOD if last.reached >= ENOUGH_REACHED and limit <= last.attempt else Confidence.LOW,
        evidence=_evidence(rescues),
        caveats=_caveats(limit, last, rescues),
        max_attempts=limit,
        rescues=rescues,
    )


def _rescue(attempt: int, reached: int, rescued: int) -> Rescue:
    low, high = wilson(rescued, reached)
    return Rescue(attempt, reached, rescued, low, high)


def _is_known(rescue: Rescue) -> bool:
    return rescue.reached >= FEWEST_REACHED


def _is_limit(last: Rescue, rescues: tuple[Rescue, ...], policy: QueuePolicy) -> bool:
    """Whether tasks die at this attempt: no later one was reached, and the queue has a limit."""
    return last.attempt == rescues[-1].attempt and 0 < policy.max_attempts <= last.attempt


def _kept(last: Rescue, policy: QueuePolicy) -> int:
    """The limit as it is, unless a later attempt was seen to be of use."""
    return max(policy.max_attempts, last.attempt)


def _too_few(rescues: tuple[Rescue, ...]) -> str:
    if not rescues:
        return "No task has ended an attempt yet: nothing can be said about retries."
    second = next((rescue.reached for rescue in rescues if rescue.attempt == 2), 0)
    ended = f"{count(second, 'task', 'tasks')} ended a second attempt"
    return f"Too few retries to advise on: {ended}, {FEWEST_REACHED} are needed."


def _hopeless(rescues: tuple[Rescue, ...]) -> str:
    tasks = count(rescues[0].reached, "task", "tasks")
    return f"No attempt at {tasks} succeeded: until the cause is put right, no number of attempts is."


def _costly(rescues: tuple[Rescue, ...], best: int) -> str:
    """What the attempts after the best one cost and brought."""
    later = [rescue for rescue in rescues if rescue.attempt > best]
    runs, rescued = sum(rescue.reached for rescue in later), sum(rescue.rescued for rescue in later)
    next_one = later[0]
    return (
        f"Attempt {next_one.attempt} rescued {percent(next_one.share)} of the tasks that reached it, and all"
        f" after attempt {best} took {count(runs, 'run', 'runs')} to rescue {count(rescued, 'task', 'tasks')}:"
        f" max_attempts {best} is enough."
    )


def _hopeful(last: Rescue) -> str:
    return (
        f"The last attempt, number {last.attempt}, still rescued {percent(last.share)} of the tasks that reached it:"
        f" try max_attempts {last.attempt + MORE_ATTEMPTS}."
    )


def _useful(last: Rescue, limit: int) -> str:
    return (
        f"Attempt {last.attempt} rescued {percent(last.share)} of the tasks that reached it:"
        f" max_attempts {limit} is right."
    )


def _caveats(limit: int, last: Rescue, rescues: tuple[Rescue, ...]) -> tuple[str, ...]:
    caveats = []
    if limit > last.attempt:
        caveats.append(f"What attempts after number {last.attempt} would rescue was not seen: too few tasks had them.")
    if last.reached < ENOUGH_REACHED:
        caveats.append(f"Only {count(last.reached, 'task', 'tasks')} reached attempt {last.attempt}.")
    if rescues[-1].attempt >= LAST_ATTEMPT:
        caveats.append(f"Attempts after number {LAST_ATTEMPT} are counted as that one.")
    return tuple(caveats)


def _evidence(rescues: tuple[Rescue, ...]) -> tuple[Figure, ...]:
    return tuple(
        Figure(f"attempt {rescue.attempt} rescued, of {rescue.reached:,} that reached it", rescue.share, "share")
        for rescue in rescues[:10]
    )
