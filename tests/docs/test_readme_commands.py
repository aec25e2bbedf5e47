"""The README's first steps do what they say, and answer what they show."""

from pathlib import Path

from app.settings import Settings
from tests.docs.commands import SHOWN_ADDRESS, check_commands, masked, needs_curl, steps
from tests.docs.markdown import README


@needs_curl
def test_commands_answer_what_is_shown(tmp_path: Path) -> None:
    check_commands(steps(README, "try"), tmp_path)


@needs_curl
def test_commands_about_topics_and_queues_answer_what_is_shown(tmp_path: Path) -> None:
    address, *_ = steps(README, "try")
    check_commands([address, *steps(README, "topology")], tmp_path)


def test_life_of_a_task_takes_six_calls() -> None:
    calls = [command.count("curl ") for command, _ in steps(README, "try")]
    assert calls == [0, 1, 1, 1, 1, 1, 1]


def test_address_is_the_default_one() -> None:
    assert SHOWN_ADDRESS.endswith(f":{Settings().port}")
    assert SHOWN_ADDRESS in "".join(command for command, _ in steps(README, "try"))


def test_mask_tells_equal_values_from_different_ones() -> None:
    one, two = "2026-11-16T05:47:41.317590Z", "2026-11-16T05:47:41.317591Z"
    assert masked(f"{one} {one}") != masked(f"{one} {two}")
    assert masked(f"{one} {two}") == masked(f"{two} {one}")
    assert masked("1") != masked("2")
