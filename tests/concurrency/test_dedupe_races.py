"""Dedupe keys and ids, raced for by two processes: whatever the interleaving, one task at most holds each."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.domain.commands import AckItem, FailItem, ReserveRequest
from app.domain.lease_token import lease_token_hash
from app.repository.protocol import Repository
from tests.concurrency.racing import (
    QUEUE,
    Ack,
    Call,
    Cancel,
    Enqueue,
    EnqueueAnew,
    Nothing,
    Racers,
    Requeue,
    RequeueMany,
    Told,
    new_task,
)
from tests.concurrency.tables import Tables

ROUNDS = 1000
HALF = ROUNDS // 2
KEYS = [f"key-{number}" for number in range(ROUNDS)]
SOME_KEYS = KEYS[:200]
SHORT_WINDOWS = (0.05, 0.1, 0.2)
WINDOW_HEAT = 50
MAX_BYTES = 8 * 1024 * 1024


class Holders:
    """Tasks that hold keys before a race begins: waiting, leased or dead, in the order of the keys."""

    def __init__(self, repository: Repository, tenant: str) -> None:
        self._repository = repository
        self._tenant = tenant

    async def waiting(self, keys: Sequence[str], dedupe_seconds: float = 0.0) -> list[str]:
        tasks = [new_task(key, dedupe_seconds) for key in keys]
        return [task.id for task in await self._repository.enqueue_many(self._tenant, tasks)]

    async def leased(self, keys: Sequence[str], dedupe_seconds: float = 0.0) -> list[Ack]:
        """The calls that would ack them."""
        ids = await self.waiting(keys, dedupe_seconds)
        request = ReserveRequest(self._tenant, [QUEUE], limit=ROUNDS, lease_seconds=600, max_bytes=MAX_BYTES)
        tokens = {
            lease.task.id: lease.lease_token for lease in (await self._repository.reserve_many([request]))[0].tasks
        }
        return [Ack(task_id, lease_token_hash(tokens[task_id])) for task_id in ids]

    async def dead(self, keys: Sequence[str]) -> list[str]:
        leases = await self.leased(keys)
        items = [FailItem(lease.id, lease.token_hash, "broken") for lease in leases]
        await self._repository.fail_many(self._tenant, items)
        return [lease.id for lease in leases]


@pytest.fixture
def holders(repository: Repository, tenant: str) -> Holders:
    return Holders(repository, tenant)


def race_evenly(racers: Racers, tenant: str, some: Sequence[Call], others: Sequence[Call]) -> list[tuple[Told, Told]]:
    """A race with sides changed in every other round, so that neither kind of call is always the faster process's."""
    pairs = [pair if number % 2 else pair[::-1] for number, pair in enumerate(zip(some, others, strict=True))]
    outcomes = racers.race(tenant, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return [pair if number % 2 else pair[::-1] for number, pair in enumerate(outcomes)]


async def test_two_enqueues_of_a_key_make_one_task(racers: Racers, tables: Tables, tenant: str) -> None:
    calls = [Enqueue(key) for key in KEYS]
    outcomes = racers.race(tenant, calls, calls)
    for one, other in outcomes:
        assert {one.what, other.what} == {"created", "existed"}
        assert one.id == other.id
    assert await tables.key_holders() == {key: one.id for key, (one, _) in zip(KEYS, outcomes, strict=True)}


async def test_two_enqueues_of_an_id_make_one_task(racers: Racers, tables: Tables, tenant: str) -> None:
    calls = [Enqueue(None, id=f"task-{number}") for number in range(len(SOME_KEYS))]
    outcomes = racers.race(tenant, calls, calls)
    assert {frozenset((one.what, other.what)) for one, other in outcomes} == {frozenset({"created", "task_exists"})}
    assert set(await tables.live()) == {call.id for call in calls}


async def test_enqueue_against_ack(racers: Racers, holders: Holders, tables: Tables, tenant: str) -> None:
    """Without a window the enqueue is told of the old task or makes a new one; with one it is told of the old task."""
    acks = [*await holders.leased(KEYS[:HALF]), *await holders.leased(KEYS[HALF:], dedupe_seconds=600)]
    outcomes = race_evenly(racers, tenant, [Enqueue(key) for key in KEYS], acks)
    assert [acked for _, acked in outcomes] == [Told("done", ack.id) for ack in acks]
    assert set(await tables.history("done")) == {ack.id for ack in acks}
    enqueued = [told for told, _ in outcomes]
    assert enqueued[HALF:] == [Told("existed", ack.id) for ack in acks[HALF:]]
    kept = {key: ack.id for key, ack in zip(KEYS[HALF:], acks[HALF:], strict=True)}
    await check_old_or_new(KEYS[:HALF], [ack.id for ack in acks[:HALF]], enqueued[:HALF], kept, tables)


async def test_enqueue_against_the_end_of_a_window(
    racers: Racers, repository: Repository, tables: Tables, tenant: str
) -> None:
    """Both processes ask for a key until its window is over: one gets a new task, not before, the other hears of it."""
    windows = [random.choice(SHORT_WINDOWS) for _ in KEYS]
    for start in range(0, ROUNDS, WINDOW_HEAT):
        part = slice(start, start + WINDOW_HEAT)
        old = await finish(repository, tenant, KEYS[part], windows[part])
        left, right = ([anew(*held) for held in zip(KEYS[part], old, windows[part], strict=True)] for _ in range(2))
        outcomes = racers.race(tenant, left, right, heat=WINDOW_HEAT)
        assert {frozenset((one.what, other.what)) for one, other in outcomes} == {frozenset({"created", "existed"})}
        assert [one.id for one, _ in outcomes] == [other.id for _, other in outcomes]
    await check_windows_were_kept(tables, dict(zip(KEYS, windows, strict=True)))


async def test_enqueue_against_cancel(racers: Racers, holders: Holders, tables: Tables, tenant: str) -> None:
    """Of tasks that wait, and by force of tasks that are leased, whose windows a cancel does not begin."""
    leased = [ack.id for ack in await holders.leased(KEYS[:HALF], dedupe_seconds=600)]
    ids = [*leased, *await holders.waiting(KEYS[HALF:])]
    cancels = [Cancel(task_id, force=task_id in leased) for task_id in ids]
    outcomes = race_evenly(racers, tenant, [Enqueue(key) for key in KEYS], cancels)
    assert {cancelled.what for _, cancelled in outcomes} == {"cancelled"}
    assert set(await tables.history("cancelled")) == set(ids)
    await check_old_or_new(KEYS, ids, [enqueued for enqueued, _ in outcomes], {}, tables)


async def test_enqueue_against_requeue(racers: Racers, holders: Holders, tables: Tables, tenant: str) -> None:
    ids = await holders.dead(KEYS)
    outcomes = race_evenly(racers, tenant, [Enqueue(key) for key in KEYS], [Requeue(task_id) for task_id in ids])
    told = Counter((enqueued.what, requeued.what) for enqueued, requeued in outcomes)
    assert set(told) <= {("created", "dedupe_conflict"), ("existed", "requeued")}
    await check_requeued(KEYS, ids, [enqueued for enqueued, _ in outcomes], tables)
    assert len(await tables.dead()) == told["created", "dedupe_conflict"]


async def test_enqueue_against_requeue_in_bulk(racers: Racers, holders: Holders, tables: Tables, tenant: str) -> None:
    """Every other key is enqueued meanwhile: only for those may a dead letter be skipped."""
    ids, heat = await holders.dead(SOME_KEYS), len(SOME_KEYS) // 8
    enqueues: list[Call] = [Nothing() if number % 2 else Enqueue(key) for number, key in enumerate(SOME_KEYS)]
    requeues: list[Call] = [
        Nothing() if number % heat else RequeueMany(ids[number : number + heat]) for number in range(len(ids))
    ]
    outcomes = racers.race(tenant, enqueues, requeues, heat)
    bulk = [requeued for _, requeued in outcomes if requeued.what != "nothing"]
    assert [(told.what, told.requeued + told.skipped) for told in bulk] == [("requeued", heat)] * 8
    dead = await tables.dead()
    assert len(dead) == sum(told.skipped for told in bulk)
    assert dead.keys().isdisjoint(ids[1::2])
    await check_requeued(
        SOME_KEYS[::2], ids[::2], [enqueued for enqueued, _ in outcomes[::2]], tables, others=ids[1::2]
    )


async def test_two_requeues_bring_a_dead_letter_back_once(
    racers: Racers, holders: Holders, tables: Tables, tenant: str
) -> None:
    ids = await holders.dead(SOME_KEYS)
    calls = [Requeue(task_id) for task_id in ids]
    for one, other in racers.race(tenant, calls, calls):
        # The slower one finds no dead letter any more.
        assert {one.what, other.what} == {"requeued", "task_not_found"}
    assert (set(await tables.live()), await tables.dead()) == (set(ids), {})
    assert await tables.broken() == []


async def check_old_or_new(
    keys: Sequence[str], old: Sequence[str], enqueued: Sequence[Told], kept: Mapping[str, str], tables: Tables
) -> None:
    """Each enqueue was told of the old task or made a new one, the only one alive; `kept` keys are held besides."""
    new = {key: told.id for key, told in zip(keys, enqueued, strict=True) if told.what == "created"}
    for told, task_id in zip(enqueued, old, strict=True):
        assert told.what == "created" or told == Told("existed", task_id)
    assert await tables.key_holders() == {**new, **kept}
    assert set(await tables.live()) == set(new.values())
    assert await tables.broken() == []
    # Otherwise nothing was raced for.
    assert 0 < len(new) < len(keys)


async def check_requeued(
    keys: Sequence[str], ids: Sequence[str], enqueued: Sequence[Told], tables: Tables, others: Sequence[str] = ()
) -> None:
    """For each key either the dead letter lives again and the enqueue heard of it, or it is still dead."""
    live, dead = await tables.live(), await tables.dead()
    assert set(live) == {told.id for told in enqueued} | set(others)
    assert (await tables.key_holders()).items() >= {k: told.id for k, told in zip(keys, enqueued, strict=True)}.items()
    for task_id, told in zip(ids, enqueued, strict=True):
        assert (told.what == "created") == (task_id in dead)
        assert (told == Told("existed", task_id)) == (task_id in live)
    assert await tables.broken() == []


async def finish(repository: Repository, tenant: str, keys: list[str], windows: list[float]) -> list[str]:
    """Tasks that are done a moment ago, each with a window."""
    tasks = [new_task(key, window) for key, window in zip(keys, windows, strict=True)]
    await repository.enqueue_many(tenant, tasks)
    request = ReserveRequest(tenant, [QUEUE], limit=ROUNDS, lease_seconds=600, max_bytes=MAX_BYTES)
    tokens = {lease.task.id: lease.lease_token for lease in (await repository.reserve_many([request]))[0].tasks}
    await repository.ack_many(tenant, [AckItem(task.id, lease_token_hash(tokens[task.id])) for task in tasks])
    return [task.id for task in tasks]


def anew(key: str, old_id: str, window: float) -> EnqueueAnew:
    """Asks first around the end of the window, which began a few milliseconds ago."""
    return EnqueueAnew(key, old_id, window * random.uniform(0.5, 1.1), pause_seconds=window / 8)


async def check_windows_were_kept(tables: Tables, windows: dict[str, float]) -> None:
    done = {row["dedupe_key"]: row for row in (await tables.history("done")).values()}
    live = {row["dedupe_key"]: row for row in (await tables.live()).values()}
    assert set(done) == set(live) == set(windows)
    for key, window in windows.items():
        assert elapsed(done[key]["finished_at"], live[key]["created_at"]) >= timedelta(seconds=window)
    assert await tables.broken() == []


def elapsed(start: Any, end: Any) -> timedelta:
    """SQLite keeps times as microseconds."""
    return end - start if isinstance(start, datetime) else timedelta(microseconds=end - start)
