"""Servers from Debian's suites, unpacked once into cached directories that they take for their root."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.process import give_to_servers_user

# A developer's PATH often lacks the folders where servers and system programs are.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class CannotInstallError(Exception):
    """This machine cannot unpack the suite; the message says why in a line."""


@dataclass(frozen=True)
class Workspace:
    """A directory below the root for one server, kept from others by a lock that ends with this process."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Delete the directory and give up the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def mysql_root() -> Path:
    """Return the directory with the unpacked suite that has MySQL, made first if need be."""
    return suite_root("mysql-sid", "sid", "mysql-server-core")


def suite_root(name: str, suite: str, packages: str) -> Path:
    """Return the directory with a suite and some of its packages unpacked, made first if need be."""
    if os.geteuid() != 0:
        raise CannotInstallError("unpacking Debian's needs root")
    root = _cache() / name
    with _locked(_cache()):
        if not root.exists():
            _unpack(root, suite, packages)
    return root


def claim_workspace(root: Path) -> Workspace:
    """Make a directory below the root for one server, and remove those of test runs that were killed."""
    parent = root / "data"
    with _locked(_cache()):
        parent.mkdir(exist_ok=True)
        for abandoned in filter(None, map(_lock_at_once, parent.iterdir())):
            abandoned.remove()
        path = Path(tempfile.mkdtemp(dir=parent))
        give_to_servers_user(path)
        workspace = _lock_at_once(path)
        assert workspace is not None
        return workspace


def _unpack(root: Path, suite: str, packages: str) -> None:
    """Unpack next to the root and rename when complete, so that a root that is there is whole."""
    debootstrap = shutil.which("debootstrap", path=SEARCH_PATH) or _install_debootstrap()
    unfinished, log = root.with_suffix(".new"), root.with_suffix(".log")
    # debootstrap mounts the machine's /proc in there, and may have been killed before it took it away.
    _run(["rm", "-rf", "--one-file-system", str(unfinished)], log)
    _run([debootstrap, "--variant=minbase", f"--include={packages}", suite, str(unfinished)], log)
    # The servers' user must get in, whatever the umask.
    unfinished.chmod(0o755)
    unfinished.rename(root)


def _install_debootstrap() -> str:
    apt_get, log = shutil.which("apt-get"), _cache() / "apt-get.log"
    if apt_get is None:
        raise CannotInstallError("debootstrap is missing, and there is no apt-get to install it")
    _run([apt_get, "update"], log)
    _run([apt_get, "install", "--yes", "--no-install-recommends", "debootstrap", "debian-archive-keyring"], log)
    return shutil.which("debootstrap", path=SEARCH_PATH) or "debootstrap"


def _run(command: list[str], log: Path) -> None:
    """Run a command that asks no question and writes to the log."""
    environment = {**os.environ, "PATH": SEARCH_PATH, "DEBIAN_FRONTEND": "noninteractive"}
    with log.open("ab") as output:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, check=False
        )
    if done.returncode != 0:
        raise CannotInstallError(f"{' '.join(command[:2])} failed, see {log}")


def _cache() -> Path:
    cache = Path(os.environ.get("MQ_TEST_CACHE") or Path.home() / ".cache" / "leasemq").resolve()
    cache.mkdir(parents=True, exist_ok=True)
    return cache


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other test runs out meanwhile."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _lock_at_once(path: Path) -> Workspace | None:
    """Take the workspace, or return None if another process has it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Workspace(path, descriptor)
