"""A real `leasemq serve` process for a test."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.servers.ports import LOOPBACK, free_port
from tests.servers.process import FORKER

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("leasemq")
START_SECONDS = 60.0
STOP_SECONDS = 30.0
# Becomes the service, which then ends with the test run, however that comes about.
LAUNCH = """
import os, sys
from tests.servers.launch import die_with
die_with(int(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Service:
    """One replica on a free loopback port; it can be ended and started again on the same one."""

    def __init__(
        self,
        database_url: str,
        log: Path,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._log = log
        self._arguments = arguments
        self.database_url = database_url
        self._environment = {**_without_settings(os.environ), "MQ_DATABASE_URL": database_url, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id; the service must have been started."""
        return self._started().pid

    def start(self, *, wait: bool = True) -> None:
        """Start the service, and return when it is ready unless told not to wait."""
        self._process = FORKER.submit(self._spawn).result()
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout_seconds: float = START_SECONDS) -> None:
        """Return when `/readyz` says so; raise with the log if the service ends or takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while not self.is_ready():
            if self._started().poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"leasemq serve is not ready:\n{self.log_text()}")
            time.sleep(0.02)

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def log_text(self) -> str:
        """Everything that the service has written so far, in all its lives."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def terminate(self) -> int:
        """Ask the service to shut down, wait until it has, and return its exit code."""
        self._started().send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End the service without warning."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def close(self) -> None:
        """End the service if it runs."""
        self.kill()

    def wait(self, timeout_seconds: float = STOP_SECONDS) -> int:
        """Wait until the service has ended and return its exit code."""
        return self._started().wait(timeout_seconds)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the service was not started")
        return self._process

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [str(COMMAND), "serve", "--host", LOOPBACK, "--port", str(self.port), *self._arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", LAUNCH, str(os.getpid()), *command],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the test run, which then ends the service.
                start_new_session=True,
            )


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without anybody's own settings of the service."""
    return {name: value for name, value in environment.items() if not name.startswith("MQ_")}
