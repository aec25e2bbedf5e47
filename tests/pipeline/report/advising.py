"""Advice, made up."""

from app.pipeline.advice.findings import (
    AttemptsAdvice,
    BackoffAdvice,
    Confidence,
    DrainForecast,
    LeaseAdvice,
    LogSeen,
    QueueAdvice,
    QueueKey,
    QueuePolicy,
    Rescue,
    Target,
    WaitAt,
    WorkersAdvice,
)


def advise_on(tenant: str, queue: str, sentence: str = "Do so.") -> QueueAdvice:
    """Advice of every kind on a queue."""
    good = Confidence.GOOD
    rescues = tuple(Rescue(n, 100 // n, 90 // n, 0.8, 0.95) for n in (1, 2, 3))
    curve = tuple(WaitAt(n, 60.0 / n, 30.0 / n, 10.0 / n, 0.5) for n in (1, 2, 4))
    return QueueAdvice(
        key=QueueKey(tenant, queue),
        policy=QueuePolicy(),
        policy_is_known=False,
        log=LogSeen.ALL,
        lease=LeaseAdvice(
            sentence=sentence, confidence=good, caveats=(sentence,), lease_seconds=90, heartbeat_seconds=30
        ),
        attempts=AttemptsAdvice(sentence=sentence, confidence=Confidence.LOW, max_attempts=5, rescues=rescues),
        backoff=BackoffAdvice(sentence="Too little is known.", confidence=Confidence.NONE),
        workers=WorkersAdvice(sentence=sentence, confidence=good, target=Target(), workers=2, curve=curve),
        drain=DrainForecast(sentence=sentence, confidence=good, backlog=10, likely_seconds=120.0),
    )
