"""How long a lease should be, and how often to extend it."""

from app.pipeline.advice.findings import Confidence, Figure, LeaseAdvice, LogSeen, QueuePolicy
from app.pipeline.advice.runs import RunSummary
from app.pipeline.advice.wording import count, percent, round_up, seconds, significant

# Of fewer runs nobody knows the 99th percentile; of fewer than the second it rests on a handful of runs.
FEWEST_RUNS = 100
ENOUGH_RUNS = 1_000
# The lease has so much room above the time within which 99 % of the runs end.
HEADROOM = 1.5
# A shorter lease is lost to a slow network or a pause of the worker.
SHORTEST_LEASE_SECONDS = 5.0
# Two heartbeats may fail before the lease is lost.
HEARTBEATS_IN_LEASE = 3
# A lease that is at most so many times the one advised is left as it is.
GENEROUS = 4.0
# Slow runs leave others that ended just in time: fewer than so many for one that lost its lease, and it was not that.
NEAR_FOR_A_LOSS = 0.1
# A dead worker's task waits for the end of its lease.
LONG_LEASE_SECONDS = 600.0

NOT_LOGGED = "Successes are not all in the log of attempts: tasks that were done at once tell their run times instead."
LOG_CAVEATS = {LogSeen.PARTIAL: (NOT_LOGGED,), LogSeen.FAILURES: (NOT_LOGGED,), LogSeen.OFF: (NOT_LOGGED,)}


def advise_lease(runs: RunSummary, policy: QueuePolicy, log: LogSeen) -> LeaseAdvice:
    """A lease in which 99 % of the runs end with room to spare, and a heartbeat for the others."""
    evidence = lease_evidence(runs, policy)
    if runs.ended < FEWEST_RUNS:
        return LeaseAdvice(
            sentence=f"Too few runs to advise on the lease: {runs.ended:,} ended, {FEWEST_RUNS} are needed.",
            confidence=Confidence.NONE,
            evidence=evidence,
        )
    lease = wanted_lease(runs, policy)
    heartbeat = heartbeat_of(lease)
    sure = runs.ended >= ENOUGH_RUNS and (runs.tail_is_known or losses_are_deaths(runs))
    described = f"{describe_tail(runs)}; {describe_losses(runs, log)}"
    return LeaseAdvice(
        sentence=f"{described}: {describe_lease(lease, heartbeat, policy)}.",
        confidence=Confidence.GOOD if sure else Confidence.LOW,
        evidence=evidence,
        caveats=(*lease_caveats(runs, policy, lease), *LOG_CAVEATS.get(log, ())),
        lease_seconds=lease,
        heartbeat_seconds=heartbeat,
    )


def losses_are_deaths(runs: RunSummary) -> bool:
    """Whether leases were lost by workers that died or hung, since hardly a run ended shortly before losing its own."""
    return runs.lost > 0 and runs.ended_near < NEAR_FOR_A_LOSS * runs.lost


def known_tail(runs: RunSummary) -> float:
    """The run time that the lease has to hold: losses by death are no runs, so what ended says it all."""
    return runs.longest if losses_are_deaths(runs) and not runs.tail_is_known else runs.tail


def wanted_lease(runs: RunSummary, policy: QueuePolicy) -> float:
    """The lease to set, as a number that a person would choose, within what the queue allows."""
    # Where the tail was cut off, twice the time at which it was is the next thing to try.
    room = HEADROOM if runs.tail_is_known or losses_are_deaths(runs) else 2.0
    wanted = round_up(max(known_tail(runs) * room, SHORTEST_LEASE_SECONDS))
    if wanted <= policy.lease_seconds <= wanted * GENEROUS:
        wanted = policy.lease_seconds
    return min(wanted, policy.max_lease_seconds)


def heartbeat_of(lease_seconds: float) -> float:
    """A third of the lease; whole seconds where there are enough of them."""
    interval = lease_seconds / HEARTBEATS_IN_LEASE
    return float(round(interval)) if interval >= 3 else round(interval, 2)


def describe_tail(runs: RunSummary) -> str:
    if runs.tail_is_known:
        return f"99 % of runs end within {seconds(runs.tail)}"
    if losses_are_deaths(runs):
        return f"The longest run that ended took {seconds(runs.longest)}"
    return f"More than 1 % of runs had not ended after {seconds(runs.tail)}"


def describe_losses(runs: RunSummary, log: LogSeen) -> str:
    if log is LogSeen.OFF:
        return "whether leases were lost is not recorded"
    if not runs.lost:
        return "no lease was lost"
    lost = f"a lease of {seconds(runs.lost_after)} lost {percent(runs.lost_share)} of them"
    return f"{lost}, to workers that died or hung rather than to slow runs" if losses_are_deaths(runs) else lost


def describe_lease(lease: float, heartbeat: float, policy: QueuePolicy) -> str:
    beat = f"with a heartbeat every {significant(heartbeat)} s"
    if lease == policy.lease_seconds:
        return f"the lease of {seconds(lease)} is right, {beat}"
    return f"{seconds(lease)} instead of {seconds(policy.lease_seconds)}, {beat}"


def lease_caveats(runs: RunSummary, policy: QueuePolicy, lease: float) -> tuple[str, ...]:
    caveats = []
    if runs.ended < ENOUGH_RUNS:
        caveats.append(f"The 99th percentile of {count(runs.ended, 'run', 'runs')} rests on a handful of them.")
    if not runs.tail_is_known and not losses_are_deaths(runs):
        caveats.append("How long the runs would have taken that lost their lease is not known: look again afterwards.")
    if lease < known_tail(runs) * HEADROOM and lease == policy.max_lease_seconds:
        caveats.append(f"The queue's max_lease_seconds is {seconds(lease)}: longer runs live by heartbeats alone.")
    if lease > LONG_LEASE_SECONDS:
        caveats.append(
            f"The task of a worker that dies waits up to {seconds(lease)}; workers that extend can do with less."
        )
    return tuple(caveats)


def lease_evidence(runs: RunSummary, policy: QueuePolicy) -> tuple[Figure, ...]:
    tail = "99 % of runs end within" if runs.tail_is_known else "longest time a run was seen to last"
    figures = [
        Figure("runs that ended", runs.ended, "runs"),
        Figure("leases lost", runs.lost, "runs"),
        Figure("share of leases lost", runs.lost_share, "share"),
        Figure("lease of the queue", policy.lease_seconds, "s"),
    ]
    if runs.ended:
        figures += [
            Figure("half of the runs end within", runs.median, "s"),
            Figure(tail, runs.tail, "s"),
            Figure("longest run that ended", runs.longest, "s"),
        ]
    if runs.lost:
        figures.append(Figure("lost leases had lasted", runs.lost_after, "s"))
    return tuple(figures)
