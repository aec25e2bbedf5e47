"""The commands of the page about topics and queues do what they say, and answer what they show."""

import re
from pathlib import Path

from tests.docs.commands import check_commands, needs_curl, steps
from tests.docs.markdown import README, ROOT, blocks

PAGE = ROOT / "docs" / "topology.md"
SUBJECTS = {
    "publish and subscribe": r"/publish ",
    "exclusive queues": r'"exclusive": true',
    "keep-alive": r"/keep-alive ",
    "limits of concurrency": r'"concurrency_limit": \d',
    "limits of rate": r'"rate_per_second": \d',
    "long polling": r'"wait_seconds": \d',
}


@needs_curl
def test_commands_answer_what_is_shown(tmp_path: Path) -> None:
    check_commands(steps(PAGE, "try"), tmp_path)


def test_every_command_of_the_page_is_run() -> None:
    run = [command for command, _ in steps(PAGE, "try")]
    assert [block.text for block in blocks(PAGE.read_text("utf-8")) if block.language == "sh"] == run


def test_page_and_readme_show_every_subject() -> None:
    page = "".join(command for command, _ in steps(PAGE, "try"))
    readme = "".join(command for command, _ in steps(README, "topology"))
    for subject, pattern in SUBJECTS.items():
        assert re.search(pattern, page), subject
        assert re.search(pattern, readme), subject


def test_page_and_readme_draw_the_same_picture() -> None:
    [picture] = [block for block in blocks(PAGE.read_text("utf-8")) if "┌" in block.text]
    assert picture in blocks(README.read_text("utf-8"))
