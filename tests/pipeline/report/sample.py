"""A fortnight of a busy service, made up: queues and tenants, days and nights, failures, retries, lost leases."""

import json
import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 3, 2, tzinfo=UTC)
TENANTS = ("acme", "globex", "initech", "umbrella", "hooli")
MAX_ATTEMPTS = 5
LEASE_SECONDS = 30.0


@dataclass(frozen=True)
class Kind:
    """How tasks of one queue behave."""

    queue: str
    types: tuple[str, ...]
    weight: float
    # The middle run time and how much it varies; how often an attempt fails, and how often its worker dies.
    run_seconds: float
    spread: float
    fails: float
    dies: float
    errors: tuple[str, ...]


KINDS = (
    Kind("mail.send", ("welcome", "invoice", "digest"), 40, 0.18, 0.7, 0.02, 0.0005,
         ("SMTP 421 from mx{n}.example.net: try again later", "mailbox '{word}' does not exist")),
    Kind("images.resize", ("thumbnail", "cover"), 25, 1.4, 0.9, 0.03, 0.004,
         ("cannot identify image file 0x{hex}", "out of memory: wanted {n} bytes")),
    Kind("webhooks", ("",), 18, 0.35, 1.2, 0.16, 0.001,
         ("timeout after {n} ms to hooks.example.com/{hex}", "HTTP 503 from customer {n}", "connection refused")),
    Kind("billing.nightly", ("charge", "statement"), 7, 4.0, 0.5, 0.01, 0.0,
         ("card {n} declined", 'Traceback (most recent call last):\n  File "pay.py", line 7\nLedgerError: row {n}')),
    Kind("reports.build", ("pdf",), 4, 22.0, 0.8, 0.05, 0.06, ("<script>alert('report {n}')</script>",)),
    Kind("search.index", ("",), 10, 0.05, 0.5, 0.004, 0.0, ("version conflict: {n} < {n}",)),
)  # fmt: skip


@dataclass
class Sample:
    """Rows as dictionaries, of which each says only what differs from the plain."""

    history: list[dict[str, Any]] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)


def make_sample(tasks: int, days: int = 14, seed: int = 7) -> Sample:
    """So many tasks over so many days, always the same ones."""
    chance, sample = random.Random(seed), Sample()
    for number in range(tasks):
        _play(chance, sample, number, *_arrival(chance, days))
    return sample


def _arrival(chance: random.Random, days: int) -> tuple[Kind, datetime]:
    while True:
        kind = chance.choices(KINDS, [kind.weight for kind in KINDS])[0]
        at = START + timedelta(seconds=chance.uniform(0, days * 86400))
        if chance.random() < _busyness(kind, at):
            return kind, at


def _busyness(kind: Kind, at: datetime) -> float:
    hour = at.hour + at.minute / 60
    if kind.queue == "billing.nightly":
        return 1.0 if hour < 4 else 0.02
    day = 0.12 + 0.88 * math.exp(-(((hour - 13) / 4.5) ** 2))
    return day * (0.35 if at.isoweekday() > 5 else 1.0)


def _wait(chance: random.Random, at: datetime) -> float:
    # One morning too few workers were there.
    if (at.day, at.hour) in {(10, 9), (10, 10), (10, 11)}:
        return chance.uniform(200, 2400)
    return chance.lognormvariate(math.log(0.06), 1.3) * (1 + 6 * _busyness(KINDS[0], at) ** 6)


def _play(chance: random.Random, sample: Sample, number: int, kind: Kind, created: datetime) -> None:
    task = {
        "task_id": f"0196{number:08x}-{chance.getrandbits(32):08x}",
        "tenant_id": chance.choices(TENANTS, (50, 25, 12, 8, 5))[0],
        "queue": kind.queue,
        "type": chance.choice(kind.types),
    }
    payload = json.dumps({"n": number, "body": "x" * chance.randrange(20, 900)}).encode()
    row = {**task, "created_at": created, "max_attempts": MAX_ATTEMPTS, "payload": payload}
    if chance.random() < 0.006:
        ended = {"status": chance.choice(["expired", "cancelled"]), "finished_at": created + timedelta(minutes=5)}
        sample.history.append({**row, **ended, "attempts": 0, "available_at": created})
    else:
        _run(chance, sample, kind, row, task)


def _run(chance: random.Random, sample: Sample, kind: Kind, row: dict[str, Any], task: dict[str, Any]) -> None:
    """Attempts until one succeeds or none is left."""
    due: datetime = row["created_at"]
    ended = due
    stubborn = chance.random() < kind.fails / 6
    for attempt in range(1, MAX_ATTEMPTS + 1):
        started = max(due, ended) + timedelta(seconds=_wait(chance, due))
        row.setdefault("first_leased_at", started)
        seconds, reason = _outcome(chance, kind, stubborn)
        ended = started + timedelta(seconds=seconds)
        told = {"attempt_no": attempt, "worker_id": f"w{chance.randrange(12)}", "success": reason is None}
        sample.attempts.append({**task, **told, "started_at": started, "finished_at": ended, "reason": reason})
        row |= {"attempts": attempt, "available_at": due}
        if reason is None:
            sample.history.append({**row, "status": "done", "finished_at": ended})
            return
        if reason != "lease expired" and attempt < MAX_ATTEMPTS:
            due = ended + timedelta(seconds=5 * 2 ** (attempt - 1))
    sample.dead.append({**row, "reason": reason, "failed_at": ended})


def _outcome(chance: random.Random, kind: Kind, stubborn: bool) -> tuple[float, str | None]:
    """How long an attempt holds its lease, and why it fails, if it does."""
    seconds = chance.lognormvariate(math.log(kind.run_seconds), kind.spread)
    if chance.random() < kind.dies:
        return LEASE_SECONDS, "lease expired"
    return seconds, _error(chance, kind) if stubborn or chance.random() < kind.fails else None


def _error(chance: random.Random, kind: Kind) -> str:
    words = {
        "n": chance.randrange(10_000),
        "hex": f"{chance.getrandbits(40):010x}",
        "word": f"u{chance.randrange(900)}",
    }
    return chance.choice(kind.errors).format(**words)
