"""The `leasemq` command, run to its end."""

import os
import subprocess

from tests.service import COMMAND, ROOT


def clean_environment(**variables: str) -> dict[str, str]:
    """This process's environment without its settings of LeaseMQ, and with the given ones."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MQ_")}
    return {**inherited, **variables}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command, which must not take long."""
    return subprocess.run(
        [str(COMMAND), *arguments],
        check=False,
        cwd=ROOT,
        env=clean_environment(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
