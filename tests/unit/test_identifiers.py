"""Names and ids."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

import pytest

from app.domain.identifiers import (
    TASK_ID_MAX_LENGTH,
    TENANT_MAX_LENGTH,
    TaskIdSource,
    are_of_names,
    is_name,
    new_task_id,
)


@pytest.mark.parametrize(
    "name", ["a", "A", "0", "mail.send", "a_b", "a:b-c", "...", ".a", "-", "_", ":", "x" * 255, "default"]
)
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        " ",
        "a b",
        "a ",
        "a\n",
        "\na",
        "a/b",
        "a\\b",
        "é",
        "\u0661",
        "a\0",
        "%",
        "a,b",
        "x" * 256,
        "\ud800",
    ],
)
def test_what_is_no_name(text: str) -> None:
    assert not is_name(text)
    # Among others neither; only how long it is is not looked at there.
    assert are_of_names(["a", text, "b"]) == (text in {"", "x" * 256})


@pytest.mark.parametrize("max_length", [TASK_ID_MAX_LENGTH, TENANT_MAX_LENGTH])
def test_ids_and_tenants_are_shorter(max_length: int) -> None:
    assert is_name("x" * 64, max_length)
    assert not is_name("x" * 65, max_length)


def test_id_is_a_uuid_of_version_7() -> None:
    made = UUID(new_task_id())
    assert (made.version, made.variant) == (7, RFC_4122)


def test_id_is_written_as_uuids_are_and_is_a_name() -> None:
    made = new_task_id()
    assert made == str(UUID(made))
    assert is_name(made, TASK_ID_MAX_LENGTH)


def test_id_tells_the_millisecond_in_which_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = UUID(TaskIdSource()()).int >> 80
    assert before <= made <= time.time_ns() // 1_000_000


def test_hundred_thousand_ids_are_unique_and_in_order() -> None:
    source = TaskIdSource()
    made = [source() for _ in range(100_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {UUID(made[index]).version for index in range(0, len(made), 1000)} == {7}


def test_ids_made_by_several_threads_are_unique() -> None:
    source = TaskIdSource()
    with ThreadPoolExecutor(max_workers=4) as pool:
        batches = list(pool.map(lambda _: [source() for _ in range(5_000)], range(4)))
    assert len({made for batch in batches for made in batch}) == 20_000
    assert all(batch == sorted(batch) for batch in batches)


def test_ids_stay_in_order_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TaskIdSource()
    first = source()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert source() > first
