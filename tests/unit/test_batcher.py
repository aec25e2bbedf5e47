"""What goes together, who hears what, and who is left out."""

import asyncio
from collections.abc import Sequence

import pytest

from app.domain.errors import CallerGone, Contended, Unavailable
from app.service.batcher import Batcher, BatchLimits

LIMITS = BatchLimits(in_flight=1, max_weight=10, max_waiting=100)


class Store:
    """Takes batches of names when told to, and notes them."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.second = asyncio.Event()
        self.gate = asyncio.Event()
        self.failure: Exception | None = None
        self.given_back: list[str] = []

    async def run(self, names: Sequence[str]) -> list[str | Exception]:
        self.batches.append(list(names))
        if len(self.batches) == 2:
            self.second.set()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if "locked" in names:
            raise Contended("locked")
        if "poison" in names and len(names) > 1:
            raise RuntimeError
        return [ValueError(name) if name == "bad" else name.upper() for name in names]

    async def give_back(self, name: str, outcome: str) -> None:
        self.given_back.append(outcome)


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken for stuck, however slow the machine is."""
    monkeypatch.setattr("app.service.batcher.PATIENCE_SECONDS", 3600.0)


def batcher(store: Store, limits: BatchLimits = LIMITS) -> Batcher[str, str]:
    return Batcher(store.run, limits, store.give_back)


def submit(
    batches: Batcher[str, str], name: str, key: str = "key", weight: int = 1, gone: Sequence[str] = ()
) -> asyncio.Task[str]:
    return asyncio.create_task(batches.submit(key, name, weight=weight, is_gone=lambda: name in gone))


async def settled(*calls: asyncio.Task[str]) -> list[str | BaseException]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def turn() -> None:
    """Lets everybody go on as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def submit_behind(
    batches: Batcher[str, str], names: Sequence[str], gone: Sequence[str] = ()
) -> list[asyncio.Task[str]]:
    """The first is under way when the others come."""
    first = submit(batches, names[0], gone=gone)
    await turn()
    return [first, *(submit(batches, name, gone=gone) for name in names[1:])]


async def test_first_runs_at_once_and_the_rest_together(store: Store) -> None:
    batches = batcher(store)
    calls = await submit_behind(batches, "abcd")
    assert store.batches == [["a"]]
    store.gate.set()
    assert await settled(*calls) == ["A", "B", "C", "D"]
    assert store.batches == [["a"], ["b", "c", "d"]]


async def test_those_of_one_round_run_together(store: Store) -> None:
    batches = batcher(store)
    calls = [submit(batches, name) for name in "abcd"]
    await turn()
    assert store.batches == [["a", "b", "c", "d"]]
    store.gate.set()
    assert await settled(*calls) == ["A", "B", "C", "D"]


async def test_nobody_hears_before_the_batch_has_run(store: Store) -> None:
    batches = batcher(store)
    calls = [submit(batches, name) for name in "ab"]
    await turn()
    assert not any(call.done() for call in calls)
    store.gate.set()
    assert await settled(*calls) == ["A", "B"]


async def test_several_may_be_under_way(store: Store) -> None:
    batches = batcher(store, BatchLimits(in_flight=2, max_weight=10, max_waiting=100))
    calls = await submit_behind(batches, "ab")
    await turn()
    calls.append(submit(batches, "c"))
    await turn()
    assert store.batches == [["a"], ["b"]]
    store.gate.set()
    assert await settled(*calls) == ["A", "B", "C"]


@pytest.mark.usefixtures("patience")
async def test_little_waits_to_go_together_and_enough_goes_beside(store: Store) -> None:
    batches = batcher(store, BatchLimits(in_flight=2, max_weight=10, max_waiting=100, worthwhile=3))
    calls = await submit_behind(batches, "abc")
    await turn()
    assert store.batches == [["a"]]
    calls.append(submit(batches, "d"))
    await turn()
    assert store.batches == [["a"], ["b", "c", "d"]]
    store.gate.set()
    assert await settled(*calls) == ["A", "B", "C", "D"]


@pytest.mark.usefixtures("patience")
async def test_little_of_another_key_does_not_wait(store: Store) -> None:
    batches = batcher(store, BatchLimits(in_flight=2, max_weight=10, max_waiting=100, worthwhile=3))
    first = submit(batches, "a")
    await turn()
    others = [submit(batches, "b"), submit(batches, "c", key="other")]
    await turn()
    assert store.batches == [["a"], ["c"]]
    store.gate.set()
    assert await settled(first, *others) == ["A", "B", "C"]


async def test_little_does_not_wait_for_one_that_is_stuck(store: Store) -> None:
    batches = batcher(store, BatchLimits(in_flight=2, max_weight=10, max_waiting=100, worthwhile=3))
    calls = await submit_behind(batches, "ab")
    await store.second.wait()
    assert store.batches == [["a"], ["b"]]
    store.gate.set()
    assert await settled(*calls) == ["A", "B"]


async def test_batch_ends_where_it_weighs_enough(store: Store) -> None:
    batches = batcher(store)
    weights = {"a": 1, "b": 6, "c": 4, "d": 1, "e": 11, "f": 1}
    calls = [submit(batches, name, weight=weight) for name, weight in weights.items()]
    store.gate.set()
    await settled(*calls)
    assert store.batches == [["a", "b"], ["c", "d"], ["e"], ["f"]]


async def test_keys_do_not_mix_and_take_turns(store: Store) -> None:
    batches = batcher(store, BatchLimits(in_flight=1, max_weight=2, max_waiting=100))
    first = submit(batches, "first")
    await turn()
    calls = [submit(batches, f"many-{number}", key="many") for number in range(6)]
    other = submit(batches, "other", key="other")
    store.gate.set()
    await settled(first, other, *calls)
    assert store.batches[:3] == [["first"], ["many-0", "many-1"], ["other"]]


async def test_outcome_of_one_may_be_an_error(store: Store) -> None:
    batches = batcher(store)
    calls = await submit_behind(batches, ("a", "b", "bad", "c"))
    store.gate.set()
    told = await settled(*calls)
    assert (told[0], told[1], told[3]) == ("A", "B", "C")
    assert isinstance(told[2], ValueError)


async def test_one_that_spoils_the_batch_spoils_only_itself(store: Store) -> None:
    batches = batcher(store)
    calls = await submit_behind(batches, ("a", "b", "poison", "c"))
    store.gate.set()
    assert await settled(*calls) == ["A", "B", "POISON", "C"]
    assert store.batches == [["a"], ["b", "poison", "c"], ["b"], ["poison"], ["c"]]


async def test_one_that_waits_for_a_lock_keeps_nobody_waiting(store: Store) -> None:
    batches = batcher(store)
    calls = await submit_behind(batches, ("a", "b", "locked", "c"))
    store.gate.set()
    outcomes = await settled(*calls)
    assert [type(outcome) for outcome in outcomes] == [str, str, Contended, str]
    assert store.batches == [["a"], ["b", "locked", "c"], ["b"], ["locked"], ["c"]]


async def test_database_that_does_not_answer_is_told_to_all_and_not_asked_again(store: Store) -> None:
    batches = batcher(store)
    store.failure = Unavailable("down", applied=None)
    calls = await submit_behind(batches, "abc")
    store.gate.set()
    assert await settled(*calls) == [store.failure] * 3
    assert store.batches == [["a"], ["b", "c"]]


async def test_too_many_that_wait_are_refused_at_once(store: Store) -> None:
    batches = batcher(store, BatchLimits(in_flight=1, max_weight=10, max_waiting=2))
    calls = await submit_behind(batches, "abc")
    await turn()
    with pytest.raises(Unavailable) as refusal:
        await batches.submit("key", "d", weight=1, is_gone=lambda: False)
    assert refusal.value.applied is False
    store.gate.set()
    assert await settled(*calls) == ["A", "B", "C"]
    assert await submit(batches, "e") == "E"


async def test_caller_that_hung_up_while_waiting_is_left_out(store: Store) -> None:
    batches = batcher(store)
    calls = await submit_behind(batches, "abc", gone="bd")
    store.gate.set()
    told = await settled(*calls)
    assert (told[0], told[2]) == ("A", "C")
    assert isinstance(told[1], CallerGone)
    assert store.batches == [["a"], ["c"]]


async def test_call_that_is_cancelled_while_waiting_is_left_out(store: Store) -> None:
    batches = batcher(store)
    calls = await submit_behind(batches, "abc")
    await turn()
    calls[1].cancel()
    store.gate.set()
    await settled(*calls)
    assert store.batches == [["a"], ["c"]]


async def test_what_cannot_be_delivered_is_given_back(store: Store) -> None:
    batches = batcher(store)
    call = submit(batches, "a")
    await turn()
    call.cancel()
    store.gate.set()
    await settled(call)
    await batches.drain()
    assert store.given_back == ["A"]
