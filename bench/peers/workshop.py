"""Installs the peers from their registries into an environment of their own, and runs their programs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bench.scenario import CannotMeasureError, Measured

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-bench"
TIMEOUT_SECONDS = 300.0


class Workshop:
    """The peers' environments, made when the first peer of a kind is asked for."""

    def run_python(self, program: str, arguments: Sequence[str]) -> Measured:
        """Run a Python peer and return its figures."""
        return _figures([str(self._python), str(HERE / program), *arguments])

    def run_node(self, program: str, arguments: Sequence[str]) -> Measured:
        """Run a Node.js peer and return its figures."""
        return _figures([self._node, str(self._modules / program), *arguments])

    @cached_property
    def _python(self) -> Path:
        python = ENVIRONMENT / "bin" / "python"
        wanted = (HERE / "requirements.txt").read_text()
        mark = ENVIRONMENT / "requirements.txt"
        if not mark.exists() or mark.read_text() != wanted:
            _install([sys.executable, "-m", "venv", str(ENVIRONMENT)], "an environment for the Python peers")
            pip = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(HERE / "requirements.txt")]
            _install(pip, "the Python peers")
            mark.write_text(wanted)
        return python

    @property
    def _node(self) -> str:
        node = shutil.which("node")
        if node is None or shutil.which("npm") is None:
            raise CannotMeasureError("there is no Node.js with npm on the PATH")
        return node

    @cached_property
    def _modules(self) -> Path:
        """A folder with the programs next to the packages that they import."""
        folder = ENVIRONMENT / "node"
        wanted = (HERE / "node" / "package.json").read_text()
        mark = folder / "installed.json"
        shutil.copytree(HERE / "node", folder, dirs_exist_ok=True)
        if not mark.exists() or mark.read_text() != wanted:
            command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--prefix", str(folder)]
            _install(command, "the Node.js peers")
            mark.write_text(wanted)
        return folder


def _install(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise CannotMeasureError(f"{what} cannot be installed: {' '.join(reason)}")


def _figures(command: list[str]) -> Measured:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            timeout=TIMEOUT_SECONDS, env={**os.environ, "NODE_NO_WARNINGS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CannotMeasureError(f"it took longer than {TIMEOUT_SECONDS:.0f} s") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise CannotMeasureError(f"it failed: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    figures: Measured = json.loads(lines[-1])
    return figures
