"""Builds the load generator, runs it, and reads what it counted."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("client")
FALLBACK = Path(__file__).with_name("python_client.py")
# Beyond its own time a run may wait for replies.
GRACE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What each connection does in turn: E enqueues, R reserves, A acks, X posts `body` to `path`.

    With `dedupe_seconds` every task has a dedupe key of its own, of the kind that the pipeline makes.
    `rate` starts so many turns a second whether or not earlier ones have ended; 0 starts one when the last has ended.
    """

    steps: str = "ERA"
    queue: str = "bench"
    connections: int = 64
    batch: int = 1
    seconds: float = 1.0
    warmup_seconds: float = 0.0
    wait_seconds: float = 0.0
    dedupe_seconds: float = 0.0
    rate: float = 0.0
    total: int = 0
    stop_when_empty: bool = False
    path: str = "/"
    body: str = "{}"

    def arguments(self, port: int) -> list[str]:
        """The generator's options."""
        options = {
            "port": port, "steps": self.steps, "queue": self.queue, "connections": self.connections,
            "batch": self.batch, "seconds": self.seconds, "warmup": self.warmup_seconds, "wait": self.wait_seconds,
            "dedupe": self.dedupe_seconds, "rate": self.rate, "total": self.total, "path": self.path,
            "body": self.body,
        }  # fmt: skip
        flags = ["--stop-when-empty"] if self.stop_when_empty else []
        return [part for name, value in options.items() for part in (f"--{name}", str(value))] + flags


@dataclass(frozen=True, slots=True)
class Load:
    """What a run of the generator counted; `cores` is what it took of the processors itself."""

    tasks: int
    calls: int
    errors: int
    empty: int
    seconds: float
    cores: float
    latencies: dict[str, dict[str, float]]

    @property
    def per_second(self) -> float:
        """Tasks a second through the last step."""
        return self.tasks / self.seconds if self.seconds > 0 else 0.0


class Generator:
    """A command that takes a plan's options and prints one line of JSON."""

    def __init__(self, command: Sequence[str], *, compiled: bool) -> None:
        self._command = list(command)
        self.compiled = compiled

    def run(self, port: int, plan: Plan) -> Load:
        """Put the load on the port, and return when it is over."""
        with self.start(port, plan) as process:
            return finish(process, plan)

    def start(self, port: int, plan: Plan) -> subprocess.Popen[str]:
        """Begin to put the load on the port."""
        command = [*self._command, *plan.arguments(port)]
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


def finish(process: subprocess.Popen[str], plan: Plan) -> Load:
    """Wait for a run to end and read what it counted; raise if it failed, or was refused throughout."""
    try:
        output, complaints = process.communicate(timeout=plan.warmup_seconds + 4 * plan.seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    if process.returncode != 0:
        raise RuntimeError(f"the load generator failed: {complaints}")
    load = _read(json.loads(output))
    if load.errors and not load.tasks:
        raise RuntimeError(f"every call failed: {complaints}")
    return load


def build_generator(directory: Path) -> Generator:
    """Compile the client into the directory, or take the slower one if there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return Generator([sys.executable, str(FALLBACK)], compiled=False)
    program = directory / "load-client"
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    subprocess.run([compiler, "-O2", "-Wall", "-o", str(program), *sources, "-lm"], check=True)
    return Generator([str(program)], compiled=True)


def _read(counted: dict[str, Any]) -> Load:
    latencies = {name: counted.pop(name) for name in list(counted) if isinstance(counted[name], dict)}
    return Load(**counted, latencies=latencies)
