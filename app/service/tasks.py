"""Tasks: enqueue, reserve, settle, look, change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from app.domain.commands import (
    AckItem,
    AttemptKey,
    Extended,
    ExtendItem,
    ExtendOutcome,
    FailItem,
    FinishedKey,
    LeaseRef,
    LiveKey,
    NackItem,
    Page,
    ReleaseItem,
    Reserved,
    ReserveRequest,
    Settled,
    SettleOutcome,
    TaskEdit,
    TaskFilter,
)
from app.domain.errors import DoneInPart, LeaseMQError, TaskExists, Unavailable
from app.domain.lease_token import lease_token_hash
from app.domain.task import Attempt, Enqueued, NewTask, Task
from app.metrics import Metrics
from app.repository.protocol import Repository
from app.service.batcher import Batcher, BatchLimits, IsGone
from app.service.turns import Turns
from app.service.waiters import Waiter, Waiters
from app.service.wakeups import WakeUps

LOOK_AFTER_CALLER_SECONDS = 1.0
BYTES_OF_WEIGHT = 8 * 1024

Item = TypeVar("Item", bound=LeaseRef)
Outcome = TypeVar("Outcome")
Settlement = TypeVar("Settlement", bound=ExtendOutcome | SettleOutcome)


def is_there() -> bool:
    """The answer of a caller that cannot hang up to whether it is gone."""
    return False


class TaskService:
    """Everything about tasks that are not dead letters. The hot calls go in micro-batches."""

    def __init__(
        self, repository: Repository, metrics: Metrics, waiters: Waiters, wakeups: WakeUps, limits: BatchLimits
    ) -> None:
        self._repository = repository
        self._metrics = metrics
        self._waiters = waiters
        self._wakeups = wakeups
        self._turns = Turns()
        self._enqueues = Batcher(self._enqueue_together, limits)
        self._reserves = Batcher(self._reserve_together, limits, self._give_back)
        self._extends = Batcher(self._together("extend", repository.extend_many), limits)
        self._acks = Batcher(self._together("ack", repository.ack_many, self._wake_settled), limits)
        self._nacks = Batcher(self._together("nack", repository.nack_many, wakeups.announce), limits)
        self._releases = Batcher(self._together("release", repository.release_many, wakeups.announce), limits)
        self._fails = Batcher(self._together("fail", repository.fail_many, self._wake_settled), limits)
        self._batchers: Sequence[Batcher[Any, Any]] = (
            self._enqueues, self._reserves, self._extends, self._acks, self._nacks, self._fails, self._releases,
        )  # fmt: skip

    async def enqueue_many(
        self, tenant_id: str, tasks: Sequence[NewTask], is_gone: IsGone = is_there
    ) -> Sequence[Enqueued]:
        """Accepts all of the tasks or none."""
        return await self._enqueues.submit(tenant_id, (tenant_id, tasks), weight=_weight(tasks), is_gone=is_gone)

    async def reserve(self, request: ReserveRequest, wait_seconds: float, is_gone: IsGone = is_there) -> Reserved:
        """Leases tasks; while there are none, waits for them without holding a database connection."""
        if wait_seconds > 0:
            reserved = await self._reserve_or_wait(request, wait_seconds, is_gone)
        else:
            reserved = await self._reserve_once(request, is_gone)
        if reserved.tasks and is_gone():
            await self._give_back(request, reserved)
        return reserved

    async def extend_many(
        self, tenant_id: str, items: Sequence[ExtendItem], is_gone: IsGone = is_there
    ) -> Sequence[ExtendOutcome]:
        return await self._extends.submit(tenant_id, (tenant_id, items), weight=len(items), is_gone=is_gone)

    async def ack_many(
        self, tenant_id: str, items: Sequence[AckItem], is_gone: IsGone = is_there
    ) -> Sequence[SettleOutcome]:
        return await self._acks.submit(tenant_id, (tenant_id, items), weight=_ack_weight(items), is_gone=is_gone)

    async def nack_many(
        self, tenant_id: str, items: Sequence[NackItem], is_gone: IsGone = is_there
    ) -> Sequence[SettleOutcome]:
        return await self._nacks.submit(tenant_id, (tenant_id, items), weight=len(items), is_gone=is_gone)

    async def release_many(
        self, tenant_id: str, items: Sequence[ReleaseItem], is_gone: IsGone = is_there
    ) -> Sequence[SettleOutcome]:
        return await self._releases.submit(tenant_id, (tenant_id, items), weight=len(items), is_gone=is_gone)

    async def fail_many(
        self, tenant_id: str, items: Sequence[FailItem], is_gone: IsGone = is_there
    ) -> Sequence[SettleOutcome]:
        return await self._fails.submit(tenant_id, (tenant_id, items), weight=len(items), is_gone=is_gone)

    async def get(self, tenant_id: str, task_id: str) -> Task:
        return await self._repository.get_task(tenant_id, task_id)

    async def list_live(
        self, tenant_id: str, task_filter: TaskFilter, limit: int, after: LiveKey | None
    ) -> Page[Task, LiveKey]:
        return await self._repository.list_live(tenant_id, task_filter, limit, after)

    async def list_finished(
        self, tenant_id: str, task_filter: TaskFilter, limit: int, after: FinishedKey | None
    ) -> Page[Task, FinishedKey]:
        return await self._repository.list_finished(tenant_id, task_filter, limit, after)

    async def attempts(
        self, tenant_id: str, task_id: str, limit: int, after: AttemptKey | None
    ) -> Page[Attempt, AttemptKey]:
        return await self._repository.list_attempts(tenant_id, task_id, limit, after)

    async def edit(self, tenant_id: str, task_id: str, edit: TaskEdit) -> Task:
        task = await self._repository.edit_task(tenant_id, task_id, edit)
        self._wakeups.announce(tenant_id, {task.queue: 1})
        self._metrics.count_operation("edit", task.queue, "ok")
        return task

    async def cancel(self, tenant_id: str, task_id: str, *, force: bool) -> None:
        queue = await self._repository.cancel_task(tenant_id, task_id, force=force)
        # A place under a limit may have become free.
        self._waiters.wake(tenant_id, queue)
        self._metrics.count_operation("cancel", queue, "ok")

    async def drain(self) -> None:
        """Returns when all that was begun has ended."""
        for batcher in self._batchers:
            await batcher.drain()

    async def _enqueue_together(
        self, requests: Sequence[tuple[str, Sequence[NewTask]]]
    ) -> Sequence[Sequence[Enqueued] | TaskExists]:
        tenant_id = requests[0][0]
        batches = [tasks for _, tasks in requests]
        try:
            outcomes = await self._repository.enqueue_batches(tenant_id, batches)
        except LeaseMQError as error:
            self._count("enqueue", ((task.queue, error.code) for task in chain.from_iterable(batches)))
            raise
        self._count("enqueue", chain.from_iterable(map(_enqueue_outcomes, batches, outcomes)))
        new = Counter(task.queue for told in outcomes if isinstance(told, list) for task in told if not task.existed)
        self._wakeups.announce(tenant_id, new)
        return outcomes

    async def _reserve_or_wait(self, request: ReserveRequest, wait_seconds: float, is_gone: IsGone) -> Reserved:
        deadline = asyncio.get_running_loop().time() + wait_seconds
        with self._waiters.join(request.tenant_id, request.queues) as waiter:
            while True:
                waiter.take_wake()
                reserved = await self._reserve_once(request, is_gone)
                if reserved.tasks or self._waiters.is_closed:
                    break
                if request.types or request.exclude_ids:
                    self._waiters.pass_on(waiter)
                self._wake_when_due(request, reserved, deadline)
                if not await _is_woken(waiter, deadline, is_gone) or self._waiters.is_closed:
                    break
        for queue in {lease.task.queue for lease in reserved.tasks}:
            # There may be more than this one took.
            self._waiters.wake(request.tenant_id, queue)
        return reserved

    def _wake_when_due(self, request: ReserveRequest, reserved: Reserved, deadline: float) -> None:
        """Only for what comes while this one waits: who waits longer looks for itself."""
        if reserved.next_available_at is not None:
            seconds = (reserved.next_available_at - reserved.server_time).total_seconds()
            if seconds < deadline - asyncio.get_running_loop().time():
                self._waiters.wake_at(request.tenant_id, request.queues, seconds)

    async def _reserve_once(self, request: ReserveRequest, is_gone: IsGone) -> Reserved:
        return await self._reserves.submit(request.wish, request, weight=request.limit, is_gone=is_gone)

    async def _reserve_together(self, requests: Sequence[ReserveRequest]) -> Sequence[Reserved | Unavailable]:
        wish = requests[0]
        queues = self._turns.order(wish.tenant_id, wish.queues)
        # The first says for all of them what is wished for.
        outcomes = await _each(self._repository.reserve_many([replace(wish, queues=queues), *requests[1:]]))
        answers = [outcome for outcome in outcomes if isinstance(outcome, Reserved)]
        served = [lease.task.queue for reserved in answers for lease in reserved.tasks]
        if served:
            self._turns.served(wish.tenant_id, wish.queues, served[-1])
        empty = sum(not reserved.tasks for reserved in answers)
        for queue, times in Counter(served).items():
            self._metrics.count_operation("reserve", queue, "ok", times)
        self._count("reserve", ((queue, "empty") for queue in queues for _ in range(empty)))
        return outcomes

    async def _give_back(self, request: ReserveRequest, reserved: Reserved) -> None:
        """Nobody is there to take the leases: the tasks are free for others at once."""
        items = [ReleaseItem(lease.task.id, lease_token_hash(lease.lease_token)) for lease in reserved.tasks]
        if items:
            await self.release_many(request.tenant_id, items)

    def _together(
        self,
        operation: str,
        settle: Callable[[str, Sequence[Item]], Awaitable[Sequence[Settlement]]],
        tell: Callable[[str, Mapping[str, int]], None] = lambda tenant_id, queues: None,
    ) -> Callable[
        [Sequence[tuple[str, Sequence[Item]]]], Awaitable[Sequence[Sequence[Settlement | Unavailable] | Unavailable]]
    ]:
        """Settles the items of several requests at once, and gives each request its own outcomes."""

        async def run(
            requests: Sequence[tuple[str, Sequence[Item]]],
        ) -> Sequence[Sequence[Settlement | Unavailable] | Unavailable]:
            tenant_id = requests[0][0]
            outcomes = await _each(settle(tenant_id, [item for _, items in requests for item in items]))
            tell(tenant_id, self._count_settled(operation, outcomes))
            one_by_one = iter(outcomes)
            return [_unless_in_vain(list(islice(one_by_one, len(items)))) for _, items in requests]

        return run

    def _count_settled(self, operation: str, outcomes: Sequence[ExtendOutcome | SettleOutcome]) -> Counter[str]:
        """Counts what came of the items, and tells in which queues how many were settled."""
        settled = [outcome for outcome in outcomes if isinstance(outcome, (Settled, Extended))]
        queues = Counter(map(attrgetter("queue"), settled))
        for queue, times in queues.items():
            self._metrics.count_operation(operation, queue, "ok", times)
        self._count(operation, (("", outcome.code) for outcome in outcomes if isinstance(outcome, LeaseMQError)))
        return queues

    def _wake_settled(self, tenant_id: str, queues: Iterable[str]) -> None:
        """A place under a limit may have become free; other replicas notice by themselves soon enough."""
        for queue in queues:
            self._waiters.wake(tenant_id, queue)

    def _count(self, operation: str, outcomes: Iterable[tuple[str, str]]) -> None:
        for (queue, outcome), times in Counter(outcomes).items():
            self._metrics.count_operation(operation, queue, outcome, times)


def _weight(tasks: Sequence[NewTask]) -> int:
    """Large payloads weigh more, so that a batch stays at about the size of one large request."""
    return sum(1 + len(task.payload.data) // BYTES_OF_WEIGHT for task in tasks)


def _ack_weight(items: Sequence[AckItem]) -> int:
    """Likewise large results."""
    return len(items) + sum(len(item.result) // BYTES_OF_WEIGHT for item in items if item.result is not None)


async def _each(call: Awaitable[Sequence[Outcome]]) -> Sequence[Outcome | Unavailable]:
    """The outcomes of a call: where the database stopped answering half-way, only those hear of it who must."""
    try:
        return await call
    except DoneInPart as error:
        return [error.error if outcome is None else outcome for outcome in error.outcomes]


def _unless_in_vain(outcomes: Sequence[Outcome | Unavailable]) -> Sequence[Outcome | Unavailable] | Unavailable:
    """The outcomes of a request; one of which nothing was done is refused as a whole."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, Unavailable)]
    return failures[0] if failures and len(failures) == len(outcomes) else outcomes


def _enqueue_outcomes(tasks: Sequence[NewTask], told: Sequence[Enqueued] | TaskExists) -> list[tuple[str, str]]:
    if isinstance(told, TaskExists):
        return [(task.queue, told.code) for task in tasks]
    return [(outcome.queue, "existed" if outcome.existed else "ok") for outcome in told]


async def _is_woken(waiter: Waiter, deadline: float, is_gone: IsGone) -> bool:
    """Waits until there may be work, and then is True; False when the time is over or the caller has hung up."""
    loop = asyncio.get_running_loop()
    while (left := deadline - loop.time()) > 0:
        await waiter.sleep(min(left, LOOK_AFTER_CALLER_SECONDS))
        if is_gone():
            return False
        if waiter.is_woken:
            return True
    return False
