"""The load generator for a machine without a C compiler: the same options and the same line of JSON, but slower."""

import argparse
import asyncio
import json
import resource
import time
from collections import defaultdict
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

PAYLOAD = {"to": "ada@example.com", "template": "welcome", "text": "0123456789" * 4}
STEP_NAMES = {"E": "enqueue", "R": "reserve", "A": "ack", "X": "post"}


@dataclass
class Tally:
    """What was counted inside the window of measurement."""

    window: tuple[float, float]
    tasks: int = 0
    calls: int = 0
    errors: int = 0
    empty: int = 0
    all_tasks: int = 0
    turns: int = 0
    last_done_at: float = 0.0
    latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def counts(self) -> bool:
        """Whether it is the time that is measured."""
        return self.window[0] <= time.monotonic() < self.window[1]


class Connection:
    """One connection that takes its steps in turn."""

    def __init__(self, options: argparse.Namespace, tally: Tally, started_at: float) -> None:
        self._options = options
        self._tally = tally
        self._started_at = started_at
        self._reserved: list[dict[str, Any]] = []

    async def run(self) -> None:
        """Take turns until the time is over or there is nothing left."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._options.port)
        while not self._is_over():
            due_at = await self._wait_for_turn()
            if not await self._turn(due_at):
                break
        self._writer.close()

    def _is_over(self) -> bool:
        enough = 0 < self._options.total <= self._tally.all_tasks
        return enough or time.monotonic() >= self._tally.window[1]

    async def _wait_for_turn(self) -> float:
        if not self._options.rate:
            return time.monotonic()
        due_at = self._started_at + self._tally.turns / self._options.rate
        self._tally.turns += 1
        await asyncio.sleep(max(0.0, due_at - time.monotonic()))
        return float(due_at)

    async def _turn(self, due_at: float) -> bool:
        """One turn; False when there is nothing left to do."""
        tasks = 0
        for step in self._options.steps:
            tasks = await self._step(step)
            if tasks == 0:
                self._tally.empty += self._tally.counts()
                return not self._options.stop_when_empty
        self._tally.all_tasks += tasks
        self._tally.last_done_at = time.monotonic()
        if self._tally.counts():
            self._tally.tasks += tasks
            self._tally.latencies["turn"].append(time.monotonic() - due_at)
        return True

    async def _step(self, step: str) -> int:
        path, body = self._request(step)
        sent_at = time.monotonic()
        status, reply = await self._post(path, body)
        if self._tally.counts():
            self._tally.calls += 1
            self._tally.latencies[STEP_NAMES[step]].append(time.monotonic() - sent_at)
        if status >= 300:
            self._tally.errors += 1
            return 0
        if step == "R":
            self._reserved = json.loads(reply)["tasks"]
        return len(self._reserved) if step in "RA" else self._options.batch

    def _request(self, step: str) -> tuple[str, bytes]:
        options = self._options
        if step == "X":
            return options.path, options.body.encode()
        if step == "E":
            tasks = [self._task() for _ in range(options.batch)]
            return (
                ("/v1/tasks", _dump(tasks[0])) if options.batch == 1 else ("/v1/tasks/batch", _dump({"tasks": tasks}))
            )
        if step == "R":
            wait = {"wait_seconds": options.wait} if options.wait else {}
            return "/v1/reserve", _dump({"queues": [options.queue], "limit": options.batch, **wait})
        items = [{"id": task["id"], "lease_token": task["lease_token"]} for task in self._reserved]
        if options.batch == 1:
            return f"/v1/tasks/{items[0].pop('id')}/ack", _dump(items[0])
        return "/v1/tasks/ack", _dump({"items": items})

    def _task(self) -> dict[str, object]:
        task = {"queue": self._options.queue, "payload": PAYLOAD}
        if not self._options.dedupe:
            return task
        key = f"write-0123456789abcdef:0.{token_hex(16)}.1"
        return {"dedupe_key": key, "dedupe_seconds": self._options.dedupe, **task}

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        return int(head.split()[1]), await self._reader.readexactly(length)


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("port", "connections", "batch", "total"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("seconds", "warmup", "wait", "dedupe", "rate"):
        parser.add_argument(f"--{name}", type=float)
    for name in ("steps", "queue", "path", "body"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--stop-when-empty", action="store_true")
    return parser.parse_args()


async def _run(options: argparse.Namespace) -> dict[str, object]:
    started_at = time.monotonic()
    window_from = started_at + options.warmup
    tally = Tally((window_from, window_from + options.seconds), last_done_at=started_at)
    async with asyncio.TaskGroup() as group:
        for _ in range(options.connections):
            group.create_task(Connection(options, tally, started_at).run())
    by_count = options.stop_when_empty or options.total
    usage, wall_seconds = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - started_at
    return {
        "tasks": tally.tasks, "calls": tally.calls, "errors": tally.errors, "empty": tally.empty,
        "seconds": tally.last_done_at - started_at if by_count else options.seconds,
        "cores": (usage.ru_utime + usage.ru_stime) / wall_seconds,
    } | {name: _quantiles(values) for name, values in tally.latencies.items()}  # fmt: skip


def _quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: ordered[int(quantile * (len(ordered) - 1))] for name, quantile in at.items()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(_options()))))
