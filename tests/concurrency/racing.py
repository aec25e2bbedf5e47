"""Two operating system processes, each with a repository of its own, that do things at the same moment.

A race is a list of rounds; in each, the left process makes one call and the right process another. Both take the rounds
a heat at a time: the calls of a heat are in flight together, and no process starts a heat before the other one does.
"""

import asyncio
import multiprocessing
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from app.domain.commands import AckItem, DeadLetterFilter, RequeueRequest, Settled
from app.domain.errors import LeaseMQError
from app.domain.identifiers import new_task_id
from app.domain.task import NewTask, Payload
from app.repository.factory import connect_dialect, open_repository
from app.repository.protocol import Repository

QUEUE = "work"
HEAT = 50
BARRIER_SECONDS = 60.0
TIMEOUT_SECONDS = 5.0
JITTER_SECONDS = 0.004
RACE_SECONDS = 120.0


@dataclass(frozen=True)
class Told:
    """How a call went, in a word or by the code of its refusal, and for which task."""

    what: str
    id: str = ""
    requeued: int = 0
    skipped: int = 0


class Call(ABC):
    """Something that a process does in a round."""

    @abstractmethod
    async def make(self, repository: Repository, tenant: str) -> Told: ...


@dataclass(frozen=True)
class Enqueue(Call):
    """`id` is the caller's; without one the task gets its own."""

    key: str | None
    dedupe_seconds: float = 0.0
    id: str | None = None

    async def make(self, repository: Repository, tenant: str) -> Told:
        [enqueued] = await repository.enqueue_many(tenant, [new_task(self.key, self.dedupe_seconds, self.id)])
        return Told("existed" if enqueued.existed else "created", enqueued.id)


@dataclass(frozen=True)
class EnqueueAnew(Call):
    """Enqueues again and again, first after `first_seconds`, until the key is no longer held by `old_id`."""

    key: str
    old_id: str
    first_seconds: float
    pause_seconds: float

    async def make(self, repository: Repository, tenant: str) -> Told:
        await asyncio.sleep(self.first_seconds)
        while True:
            told = await Enqueue(self.key).make(repository, tenant)
            if told.id != self.old_id:
                return told
            await asyncio.sleep(self.pause_seconds)


@dataclass(frozen=True)
class Ack(Call):
    id: str
    token_hash: str

    async def make(self, repository: Repository, tenant: str) -> Told:
        [settled] = await repository.ack_many(tenant, [AckItem(self.id, self.token_hash)])
        return Told(settled.status if isinstance(settled, Settled) else settled.code, self.id)


@dataclass(frozen=True)
class Cancel(Call):
    id: str
    force: bool = False

    async def make(self, repository: Repository, tenant: str) -> Told:
        await repository.cancel_task(tenant, self.id, force=self.force)
        return Told("cancelled", self.id)


@dataclass(frozen=True)
class Requeue(Call):
    id: str

    async def make(self, repository: Repository, tenant: str) -> Told:
        await repository.requeue_dead_letter(tenant, self.id, RequeueRequest(DeadLetterFilter()))
        return Told("requeued", self.id)


@dataclass(frozen=True)
class RequeueMany(Call):
    ids: Sequence[str]

    async def make(self, repository: Repository, tenant: str) -> Told:
        done = await repository.requeue_dead_letters(tenant, RequeueRequest(DeadLetterFilter(ids=self.ids)))
        return Told("requeued", requeued=done.requeued, skipped=done.skipped)


class Nothing(Call):
    """Leaves the round to the other process."""

    async def make(self, repository: Repository, tenant: str) -> Told:
        return Told("nothing")


@dataclass(frozen=True)
class Race:
    tenant: str
    calls: Sequence[Call]
    heat: int


class Racers:
    """The two processes; they wait for races until they are closed."""

    def __init__(self, database_url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._barrier = context.Barrier(2)
        pipes = [context.Pipe() for _ in range(2)]
        self._ends = [ours for ours, _ in pipes]
        self._processes = [
            context.Process(target=serve_races, args=(theirs, self._barrier, database_url), daemon=True)
            for _, theirs in pipes
        ]
        for process in self._processes:
            process.start()
        for _, theirs in pipes:
            theirs.close()

    def race(
        self, tenant: str, left: Sequence[Call], right: Sequence[Call], heat: int = HEAT
    ) -> list[tuple[Told, Told]]:
        """Runs a race and returns, round by round, what each of the two was told."""
        assert len(left) == len(right)
        self._barrier.reset()
        for end, calls in zip(self._ends, (left, right), strict=True):
            end.send(Race(tenant, calls, heat))
        return list(zip(*(self._result(end) for end in self._ends), strict=True))

    def _result(self, end: "Connection[Race | None, list[Told] | str]") -> list[Told]:
        assert end.poll(RACE_SECONDS), "the race does not end"
        result = end.recv()
        assert isinstance(result, list), result
        return result

    def close(self) -> None:
        for end in self._ends:
            end.send(None)
            end.close()
        for process in self._processes:
            process.join(BARRIER_SECONDS)
            process.close()


def serve_races(end: "Connection[list[Told] | str, Race | None]", barrier: Barrier, database_url: str) -> None:
    """What a process runs."""
    asyncio.run(_serve_races(end, barrier, database_url))


async def _serve_races(end: "Connection[list[Told] | str, Race | None]", barrier: Barrier, database_url: str) -> None:
    repository = open_repository(connect_dialect(database_url), timeout_seconds=TIMEOUT_SECONDS)
    while (race := end.recv()) is not None:
        try:
            end.send(await _run(repository, race, barrier))
        except Exception as error:
            # The other process shall not wait for this one.
            barrier.abort()
            end.send(f"{type(error).__name__}: {error}")
    await repository.close()


async def _run(repository: Repository, race: Race, barrier: Barrier) -> list[Told]:
    told: list[Told] = []
    for start in range(0, len(race.calls), race.heat):
        barrier.wait(BARRIER_SECONDS)
        calls = race.calls[start : start + race.heat]
        told += await asyncio.gather(*(_make(repository, race.tenant, call) for call in calls))
    return told


async def _make(repository: Repository, tenant: str, call: Call) -> Told:
    await asyncio.sleep(random.uniform(0, JITTER_SECONDS))
    try:
        return await call.make(repository, tenant)
    except LeaseMQError as error:
        return Told(error.code)


def new_task(key: str | None = None, dedupe_seconds: float = 0.0, task_id: str | None = None) -> NewTask:
    """A small task with a dedupe key."""
    return NewTask(
        id=task_id or new_task_id(),
        id_is_given=task_id is not None,
        queue=QUEUE,
        topic=QUEUE,
        payload=Payload(b"null", is_json=True, content_type="application/json"),
        max_attempts=5,
        dedupe_key=key,
        dedupe_seconds=dedupe_seconds,
    )
