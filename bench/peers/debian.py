"""The brokers that Debian has, unpacked once into a cached directory that they take for their root."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.scenario import CannotMeasureError
from tests.servers.debian import SEARCH_PATH

PACKAGES = "beanstalkd,rabbitmq-server"
SUITE = "stable"


def brokers_root() -> Path:
    """Return the directory with the unpacked suite, made first if need be."""
    if os.geteuid() != 0:
        raise CannotMeasureError("unpacking Debian's needs root")
    root = Path.home() / ".cache" / "leasemq" / "brokers"
    if not root.exists():
        _unpack(root)
    return root


def _unpack(root: Path) -> None:
    """Unpack next to the root and rename when complete, so that a root that is there is whole."""
    debootstrap = shutil.which("debootstrap", path=SEARCH_PATH)
    if debootstrap is None:
        raise CannotMeasureError("debootstrap is missing, which Debian's package of that name has")
    root.parent.mkdir(parents=True, exist_ok=True)
    unfinished, log = root.with_suffix(".new"), root.with_suffix(".log")
    command = [debootstrap, "--variant=minbase", f"--include={PACKAGES}", SUITE, str(unfinished)]
    with log.open("wb") as output:
        environment = {**os.environ, "PATH": SEARCH_PATH}
        subprocess.run(["rm", "-rf", "--one-file-system", str(unfinished)], check=True)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, check=False
        )
    if done.returncode != 0:
        raise CannotMeasureError(f"debootstrap failed, see {log}")
    # The servers' user must get in, whatever the umask.
    unfinished.chmod(0o755)
    unfinished.rename(root)
