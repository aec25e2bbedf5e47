"""What the Python peers' programs share: options, timed calls by many callers, one line of JSON.

It runs in the peers' own environment and imports nothing of the project.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

PAYLOAD = {"to": "ada@example.com", "template": "welcome", "text": "0123456789" * 4}

# What autovacuum would have told the planner of full tables.
ANALYZE = "VACUUM ANALYZE"


@dataclass(frozen=True)
class Options:
    """`backlog` tasks are there before anything is measured; a drain measures nothing else."""

    mode: str
    url: str
    seconds: float
    callers: int
    connections: int
    backlog: int
    batch: int


class Count:
    """Counts until the time is over, and knows when it counted last."""

    def __init__(self, seconds: float) -> None:
        self.done = 0
        self._seconds = seconds
        self._first_at = self._last_at = 0.0

    def add(self) -> None:
        """One more, unless its time is over."""
        now = time.monotonic()
        self._first_at = self._first_at or now
        if now - self._first_at <= self._seconds:
            self.done += 1
            self._last_at = now

    def per_second(self) -> float:
        """How many a second, while there were any."""
        return self.done / max(self._last_at - self._first_at, 1e-6)


def read_options() -> Options:
    """The options of a peer's program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["cycle", "drain"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    for name in ("callers", "connections", "backlog", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return Options(**vars(parser.parse_args()))


async def calls_per_second(call: Callable[[], Awaitable[object]], callers: int, seconds: float) -> float:
    """How often a second the callers together get through the call."""
    deadline = time.monotonic() + seconds

    async def repeat() -> int:
        calls = 0
        while time.monotonic() < deadline:
            await call()
            calls += 1
        return calls

    return sum(await asyncio.gather(*(repeat() for _ in range(callers)))) / seconds


def report(**figures: float) -> None:
    """Tell the benchmark."""
    print(json.dumps(figures), flush=True)
