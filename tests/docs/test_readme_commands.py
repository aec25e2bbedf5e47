"""The README's first steps do what they say, and answer what they show."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import Settings
from tests.docs.markdown import README, Block, blocks, marked
from tests.service import Service

END_OF_STEP = "=== end of step ==="
SHOWN_ADDRESS = "localhost:8080"
# What differs from run to run.
VARYING = re.compile(
    r"(?P<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z)"
    r"|(?<=\"lease_token\": \")(?P<token>[\w-]{32})(?=\")"
)

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl: the README's commands are curl's")


def steps() -> list[tuple[str, str]]:
    """The commands in order, each with the output that is shown below it."""
    found: list[tuple[str, str]] = []
    for block in blocks(marked(README.read_text(encoding="utf-8"), "try")):
        found.append(_step(block, found))
    return found


def _step(block: Block, before: list[tuple[str, str]]) -> tuple[str, str]:
    if block.language == "sh":
        return block.text, ""
    assert block.language == "json", "a step is a block of sh, and a block of json with its output"
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


@needs_curl
def test_commands_answer_what_is_shown(tmp_path: Path) -> None:
    shown = steps()
    with Service(f"sqlite:///{tmp_path / 'leasemq.db'}", tmp_path / "log") as service:
        address = service.url.removeprefix("http://")
        written = run([command.replace(SHOWN_ADDRESS, address) for command, _ in shown], tmp_path)
    assert masked(END_OF_STEP.join(written)) == masked(END_OF_STEP.join(output for _, output in shown))


def test_life_of_a_task_takes_six_calls() -> None:
    calls = [command.count("curl ") for command, _ in steps()]
    assert calls == [0, 1, 1, 1, 1, 1, 1]


def test_address_is_the_default_one() -> None:
    assert SHOWN_ADDRESS.endswith(f":{Settings().port}")
    assert SHOWN_ADDRESS in "".join(command for command, _ in steps())


def test_mask_tells_equal_values_from_different_ones() -> None:
    one, two = "2026-11-16T05:47:41.317590Z", "2026-11-16T05:47:41.317591Z"
    assert masked(f"{one} {one}") != masked(f"{one} {two}")
    assert masked(f"{one} {two}") == masked(f"{two} {one}")
    assert masked("1") != masked("2")
