"""Commands in a document, run one after the other in one shell, and what they wrote compared with what is shown."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import Block, blocks, marked
from tests.service import Service

END_OF_STEP = "=== end of step ==="
SHOWN_ADDRESS = "localhost:8080"
OUTPUTS = ("json", "text")
# What differs from run to run.
VARYING = re.compile(
    r"(?P<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z)"
    r"|(?<=\"lease_token\": \")(?P<token>[\w-]{32})(?=\")"
    r"|(?<=\"oldest_ready_seconds\":)(?P<age> ?\d+\.\d+)"
)

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl: the documents' commands are curl's")


def steps(document: Path, section: str) -> list[tuple[str, str]]:
    """The commands of a marked section in order, each with the output that is shown below it."""
    found: list[tuple[str, str]] = []
    for block in blocks(marked(document.read_text(encoding="utf-8"), section)):
        found.append(_step(block, found))
    return found


def _step(block: Block, before: list[tuple[str, str]]) -> tuple[str, str]:
    if block.language == "sh":
        return block.text, ""
    assert block.language in OUTPUTS, "a step is a block of sh, and a block with its output"
    command, output = before.pop()
    assert not output, "one output for each command"
    return command, block.text


def masked(text: str) -> str:
    """The text with a number for everything that varies: the same value has the same number everywhere."""
    seen: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"<{match.lastgroup} {len(seen) + 1}>")

    return VARYING.sub(number, text)


def run(commands: list[str], directory: Path) -> list[str]:
    """Run the commands one after the other in one shell, and return what each of them wrote."""
    script = "set -eu\n" + "".join(f"{command}echo '{END_OF_STEP}'\n" for command in commands)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=directory,
        env={**os.environ, "PATH": path, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split(f"{END_OF_STEP}\n")[:-1]


def check_commands(shown: list[tuple[str, str]], directory: Path) -> None:
    """On a service of their own the commands write what is shown."""
    with Service(f"sqlite:///{directory / 'leasemq.db'}", directory / "log") as service:
        address = service.url.removeprefix("http://")
        written = run([command.replace(SHOWN_ADDRESS, address) for command, _ in shown], directory)
    assert masked(END_OF_STEP.join(written)) == masked(END_OF_STEP.join(output for _, output in shown))
