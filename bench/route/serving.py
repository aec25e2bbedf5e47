"""Runs an ASGI application on the server that LeaseMQ runs on, with the same options."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from tests.servers.ports import LOOPBACK, free_port, is_listening
from tests.servers.process import FORKER
from tests.service import LAUNCH, ROOT

START_SECONDS = 30.0
STOP_SECONDS = 10.0


def start_asgi(factory: str, stack: ExitStack, directory: Path) -> int:
    """Start the application that the factory makes, and return its port when it listens."""
    port = free_port()
    options = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--no-server-header"]
    command = [sys.executable, "-m", "uvicorn", "--factory", factory, "--host", LOOPBACK, "--port", str(port), *options]
    log = stack.enter_context((directory / f"asgi-{port}.log").open("wb"))
    launched = [sys.executable, "-c", LAUNCH, str(os.getpid()), *command, "--log-level", "warning"]
    process = FORKER.submit(
        subprocess.Popen, launched, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    ).result()
    stack.callback(_stop, process)
    _wait(process, port)
    return port


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_listening(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not start")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
