"""Dead letters: found by every filter, newest first, and thrown away."""

import pytest

from app.domain.commands import DeadLetterFilter, FinishedKey
from app.domain.errors import TaskNotFound
from app.domain.task import Status
from tests.conformance.steps import T0, Store, at, ids


async def test_live_and_finished_tasks_are_no_dead_letters(store: Store) -> None:
    await store.finish("done")
    await store.enqueue("live")
    assert await store.dead_ids() == []
    for name in ("live", "done", "unknown"):
        with pytest.raises(TaskNotFound):
            await store.dead_letter(name)


async def test_newest_first(store: Store) -> None:
    for name, seconds in [("second", 2), ("third", 3), ("first", 1)]:
        await store.bury(name, at(seconds))
    assert await store.dead_ids(now=at(9)) == ["third", "second", "first"]


async def test_listed_letter_is_the_letter(store: Store) -> None:
    await store.bury("a", reason="why", meta='{"a":1}', dedupe_key="key")
    assert (await store.list_dead_letters()).items == [await store.dead_letter("a")]


async def test_other_tenants_are_not_among_them(store: Store, other_store: Store) -> None:
    await store.bury("a")
    assert await other_store.dead_ids() == []
    with pytest.raises(TaskNotFound):
        await other_store.dead_letter("a")


async def test_newest_of_two_with_one_id(store: Store) -> None:
    await store.bury("a", at(1), reason="first")
    await store.bury("a", at(2), reason="second")
    assert (await store.dead_letter("a", at(3))).reason == "second"
    assert await store.dead_ids(now=at(3)) == ["a", "a"]


async def test_letter_is_found_while_a_live_task_has_its_id(store: Store) -> None:
    await store.bury("a", reason="why")
    await store.enqueue("a", at(1))
    assert (await store.dead_letter("a", at(1))).reason == "why"


FILTERS = [
    (DeadLetterFilter(), ["c", "b", "a"]),
    (DeadLetterFilter(queue="one"), ["b", "a"]),
    (DeadLetterFilter(topic="news"), ["c", "b"]),
    (DeadLetterFilter(type="mail"), ["c", "a"]),
    (DeadLetterFilter(type=""), ["b"]),
    (DeadLetterFilter(before=at(3)), ["b", "a"]),
    (DeadLetterFilter(after=at(1)), ["c", "b"]),
    (DeadLetterFilter(ids=["a", "c", "unknown"]), ["c", "a"]),
    (DeadLetterFilter(ids=[]), []),
    (DeadLetterFilter(reason_contains="timeout"), ["b", "a"]),
    (DeadLetterFilter(reason_contains="timeout", queue="one", before=at(2)), ["a"]),
]
MORE_FILTERS = [
    (DeadLetterFilter(queue="three"), []),
    (DeadLetterFilter(before=at(3.000001)), ["c", "b", "a"]),
    (DeadLetterFilter(after=at(0.999999)), ["c", "b", "a"]),
    (DeadLetterFilter(after=at(1), before=at(3)), ["b"]),
    (DeadLetterFilter(ids=["a", "b"], queue="one", type="mail"), ["a"]),
    (DeadLetterFilter(reason_contains="Timeout"), []),
    (DeadLetterFilter(reason_contains="100%"), ["b"]),
    (DeadLetterFilter(reason_contains="%"), ["b"]),
    (DeadLetterFilter(reason_contains="_"), ["c"]),
    (DeadLetterFilter(reason_contains="\\"), ["c"]),
    (DeadLetterFilter(reason_contains="é\U0001f600"), ["c"]),
    (DeadLetterFilter(reason_contains="e\U0001f600"), []),
    (DeadLetterFilter(reason_contains="t "), ["b"]),
    (DeadLetterFilter(reason_contains="'"), []),
]


class TestFilters:
    """Every call on dead letters understands the same filters."""

    @pytest.fixture(autouse=True)
    async def three_letters(self, store: Store) -> None:
        await store.bury("a", at(1), reason="timeout", queue="one", type="mail")
        await store.bury("b", at(2), reason="timeout 100% sure", queue="one", topic="news")
        await store.bury("c", at(3), reason="no_such\\é\U0001f600", queue="two", type="mail", topic="news")

    @pytest.mark.parametrize(("letters", "expected"), FILTERS + MORE_FILTERS)
    async def test_list(self, store: Store, letters: DeadLetterFilter, expected: list[str]) -> None:
        assert await store.dead_ids(letters, at(9)) == expected

    @pytest.mark.parametrize(("letters", "expected"), FILTERS)
    async def test_requeue(self, store: Store, letters: DeadLetterFilter, expected: list[str]) -> None:
        assert (await store.requeue_many(letters, at(9))).requeued == len(expected)
        assert ids((await store.list_live(now=at(9))).items) == list(reversed(expected))

    @pytest.mark.parametrize(("letters", "expected"), FILTERS)
    async def test_purge(self, store: Store, letters: DeadLetterFilter, expected: list[str]) -> None:
        assert await store.purge(letters, at(9)) == len(expected)
        assert await store.dead_ids(now=at(9)) == [name for name in ("c", "b", "a") if name not in expected]


@pytest.mark.parametrize("seconds", [0, 1], ids=["same instant", "one after another"])
async def test_pages_show_what_stays_put_exactly_once(store: Store, seconds: float) -> None:
    for number in range(7):
        await store.bury(f"t{number}", at(number * seconds))
    seen: list[str] = []
    after: FinishedKey | None = None
    while True:
        page = await store.list_dead_letters(limit=2, after=after, now=at(50))
        seen += ids(page.items)
        after = page.next_key
        if after is None:
            break
        await store.bury(f"new-{len(seen)}", at(50))
        await store.delete_dead_letter(seen[-1], at(50))
    assert seen == [f"t{number}" for number in reversed(range(7))]


async def test_pages_of_a_filter(store: Store) -> None:
    for number in range(6):
        await store.bury(f"t{number}", at(number), reason=f"reason {number % 2}")
    letters = DeadLetterFilter(reason_contains="reason 1")
    page = await store.list_dead_letters(letters, limit=2, now=at(9))
    assert ids(page.items) == ["t5", "t3"]
    assert ids((await store.list_dead_letters(letters, limit=2, after=page.next_key, now=at(9))).items) == ["t1"]


class TestDelete:
    """A dead letter may be thrown away, and is gone then."""

    async def test_letter_is_gone(self, store: Store) -> None:
        await store.bury("a")
        await store.bury("b")
        await store.delete_dead_letter("a")
        assert await store.dead_ids() == ["b"]
        with pytest.raises(TaskNotFound):
            await store.get("a")

    async def test_newest_of_two_with_one_id_goes_first(self, store: Store) -> None:
        await store.bury("a", at(1), reason="first")
        await store.bury("a", at(2), reason="second")
        await store.delete_dead_letter("a", at(3))
        assert (await store.dead_letter("a", at(3))).reason == "first"

    async def test_unknown_letter(self, store: Store, other_store: Store) -> None:
        await store.bury("a")
        await store.enqueue("live")
        for asking, name in [(store, "unknown"), (store, "live"), (other_store, "a")]:
            with pytest.raises(TaskNotFound):
                await asking.delete_dead_letter(name)
        assert (await store.dead_ids(), await store.status("live")) == (["a"], Status.READY)


class TestPurge:
    """Purging throws all of them away, or only tells how many it would."""

    async def test_dry_run_changes_nothing(self, store: Store) -> None:
        await store.bury("a")
        await store.bury("b")
        assert await store.purge(dry_run=True) == 2
        assert await store.dead_ids() == ["b", "a"]

    async def test_other_tenants_keep_theirs(self, store: Store, other_store: Store) -> None:
        await store.bury("a")
        await other_store.bury("a")
        assert await store.purge() == 1
        assert await other_store.dead_ids() == ["a"]

    async def test_live_and_done_tasks_stay(self, store: Store) -> None:
        await store.finish("done")
        await store.enqueue("live")
        assert await store.purge() == 0
        assert [await store.status(name) for name in ("done", "live")] == [Status.DONE, Status.READY]

    async def test_more_than_one_batch(self, store: Store) -> None:
        await store.bury_many(1200, T0)
        assert await store.purge(dry_run=True) == 1200
        assert await store.purge() == 1200
        assert await store.dead_ids() == []
