"""Child processes that cannot outlive the test run."""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

LAUNCHER = Path(__file__).with_name("launch.py")
START_SECONDS = 60
STOP_SECONDS = 30

# "Die with the parent" means with the thread that forked, so one thread that lasts forks every server.
FORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="servers")


def launched(command: Sequence[str], root: Path = Path("/")) -> list[str]:
    """Return the command that runs `command` in `root`, without root's rights, and dies with its parent."""
    return [sys.executable, "-I", str(LAUNCHER), str(os.getpid()), str(root), *command]


def run(command: Sequence[str], root: Path = Path("/")) -> None:
    """Run a command as the servers' user to its end, and raise with its output if it fails."""
    done = subprocess.run(
        launched(command, root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}")


def give_to_servers_user(directory: Path) -> None:
    """Let the servers' user write in the directory."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(directory, user.pw_uid, user.pw_gid)


@dataclass
class ServerProcess:
    """A server as a child process that starts, stops, dies and freezes on demand."""

    command: Sequence[str]
    log: Path
    is_ready: Callable[[], bool]
    root: Path = Path("/")
    stop_signal: signal.Signals = signal.SIGTERM
    _process: psutil.Popen | None = field(default=None, init=False)

    @property
    def pid(self) -> int | None:
        """The process id while the server runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the server and return when it takes connections."""
        if self._process is not None:
            raise RuntimeError("the server runs already")
        self._process = FORKER.submit(self._spawn).result()
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.command[0]} did not start:\n{self.log.read_text()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask the server to shut down, and wait until it has."""
        if self._process is None:
            return
        self.resume()
        self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End the server as a power cut would, and return when nothing of it is left."""
        if self._process is None:
            return
        processes = self._freeze()
        for process in processes:
            _signal(process, signal.SIGKILL)
        self._process.wait(STOP_SECONDS)
        while not all(_is_dead(process) for process in processes):
            time.sleep(0.01)
        self._process = None

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing answers."""
        self._freeze()

    def resume(self) -> None:
        """Let a frozen server go on where it was."""
        for process in self._tree():
            _signal(process, signal.SIGCONT)

    def _spawn(self) -> psutil.Popen:
        with self.log.open("ab") as log:
            return psutil.Popen(
                launched(self.command, self.root),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the test run, which then stops the server.
                start_new_session=True,
            )

    def _freeze(self) -> list[psutil.Process]:
        # The parent first: a frozen parent makes no new child behind our back.
        if self._process is not None:
            _signal(self._process, signal.SIGSTOP)
        processes = self._tree()
        for process in processes:
            _signal(process, signal.SIGSTOP)
        return processes

    def _tree(self) -> list[psutil.Process]:
        if self._process is None or self._process.poll() is not None:
            return []
        return [self._process, *self._process.children(recursive=True)]


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def _is_dead(process: psutil.Process) -> bool:
    # A zombie counts as dead: in a container there may be no init to reap it.
    try:
        status: str = process.status()
    except psutil.NoSuchProcess:
        return True
    return status == psutil.STATUS_ZOMBIE
