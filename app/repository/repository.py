"""The store of tasks on a SQL database: each method is one transaction, whatever the dialect."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from app.domain import commands
from app.domain.doctor import Diagnosis
from app.domain.errors import DoneInPart, TaskExists, Unavailable
from app.domain.task import Attempt, DeadLetter, Enqueued, NewTask, Task, TaskState, TokenFate
from app.domain.transitions import Move, acked, failed, nacked, released
from app.repository import dead_letters, reading
from app.repository.catching_up import catch_up
from app.repository.dead_letters import Span, Taken
from app.repository.doctoring import diagnose
from app.repository.enqueueing import enqueue_batches
from app.repository.lateness import count_if_late
from app.repository.reserving import queues_with_work, reserve_many
from app.repository.session import Database, Scope, Session
from app.repository.settling import extend_many, settle_many
from app.repository.shortcuts import Shortcuts

Result = TypeVar("Result")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class SqlRepository:
    """See `protocol.Repository`."""

    def __init__(self, database: Database, shortcuts: Shortcuts | None) -> None:
        self._database = database
        self._shortcuts = shortcuts

    async def enqueue_many(
        self, tenant_id: str, tasks: Sequence[NewTask], now: datetime | None = None
    ) -> list[Enqueued]:
        [outcome] = await self.enqueue_batches(tenant_id, [tasks], now)
        if isinstance(outcome, TaskExists):
            raise outcome
        return outcome

    async def enqueue_batches(
        self, tenant_id: str, batches: Sequence[Sequence[NewTask]], now: datetime | None = None
    ) -> list[list[Enqueued] | TaskExists]:
        scope = Scope(tenant_id, {task.queue for batch in batches for task in batch})
        began_at = time.monotonic()
        outcomes = await self._enqueue_batches(scope, batches, now)
        if now is None:
            await count_if_late(self._database, scope, began_at)
        return outcomes

    async def _enqueue_batches(
        self, scope: Scope, batches: Sequence[Sequence[NewTask]], now: datetime | None
    ) -> list[list[Enqueued] | TaskExists]:
        if self._shortcuts is not None:
            accepted = await self._shortcuts.enqueue_batches(scope.tenant_id, batches, now)
            if accepted is not None:
                return [*accepted]
        return await self._database.write(lambda session: enqueue_batches(session, scope, batches), now, scope)

    async def reserve_many(
        self, requests: Sequence[commands.ReserveRequest], now: datetime | None = None
    ) -> list[commands.Reserved]:
        scope = Scope(requests[0].tenant_id, requests[0].queues)
        by_shortcut = None if self._shortcuts is None else await self._shortcuts.reserve_many(requests, now)
        return await _complete(
            requests,
            by_shortcut,
            lambda rest: self._database.write(lambda session: reserve_many(session, rest), now, scope),
        )

    async def queues_with_work(self, tenant_id: str, queues: Collection[str], now: datetime | None = None) -> list[str]:
        scope = Scope(tenant_id, queues)
        return await self._database.read(queues_with_work, now, scope)

    async def extend_many(
        self, tenant_id: str, items: Sequence[commands.ExtendItem], now: datetime | None = None
    ) -> list[commands.ExtendOutcome]:
        return await self._database.write(lambda session: extend_many(session, tenant_id, items), now)

    async def ack_many(
        self, tenant_id: str, items: Sequence[commands.AckItem], now: datetime | None = None
    ) -> list[commands.SettleOutcome]:
        by_shortcut = None if self._shortcuts is None else await self._shortcuts.ack_many(tenant_id, items, now)
        return await _complete(
            items,
            by_shortcut,
            lambda rest: self._database.write(
                lambda session: settle_many(session, tenant_id, rest, _ack, TokenFate.ACKED), now
            ),
        )

    async def nack_many(
        self, tenant_id: str, items: Sequence[commands.NackItem], now: datetime | None = None
    ) -> list[commands.SettleOutcome]:
        return await self._database.write(lambda session: settle_many(session, tenant_id, items, _nack), now)

    async def release_many(
        self, tenant_id: str, items: Sequence[commands.ReleaseItem], now: datetime | None = None
    ) -> list[commands.SettleOutcome]:
        return await self._database.write(lambda session: settle_many(session, tenant_id, items, _release), now)

    async def fail_many(
        self, tenant_id: str, items: Sequence[commands.FailItem], now: datetime | None = None
    ) -> list[commands.SettleOutcome]:
        return await self._database.write(
            lambda session: settle_many(session, tenant_id, items, _fail, TokenFate.FAILED), now
        )

    async def get_task(self, tenant_id: str, task_id: str, now: datetime | None = None) -> Task:
        return await self._look(tenant_id, task_id, reading.get_task, now)

    async def list_attempts(
        self,
        tenant_id: str,
        task_id: str,
        limit: int,
        after: commands.AttemptKey | None,
        now: datetime | None = None,
    ) -> commands.Page[Attempt, commands.AttemptKey]:
        look = partial(reading.list_attempts, limit=limit, after=after)
        return await self._look(tenant_id, task_id, look, now)

    async def list_live(
        self,
        tenant_id: str,
        task_filter: commands.TaskFilter,
        limit: int,
        after: commands.LiveKey | None,
        now: datetime | None = None,
    ) -> commands.Page[Task, commands.LiveKey]:
        await catch_up(self._database, tenant_id, task_filter.queue, now)
        return await self._database.read(
            lambda session: reading.list_live(session, tenant_id, task_filter, limit, after), now
        )

    async def list_finished(
        self,
        tenant_id: str,
        task_filter: commands.TaskFilter,
        limit: int,
        after: commands.FinishedKey | None,
        now: datetime | None = None,
    ) -> commands.Page[Task, commands.FinishedKey]:
        await catch_up(self._database, tenant_id, task_filter.queue, now)
        return await self._database.read(
            lambda session: reading.list_finished(session, tenant_id, task_filter, limit, after), now
        )

    async def edit_task(
        self, tenant_id: str, task_id: str, edit: commands.TaskEdit, now: datetime | None = None
    ) -> Task:
        return await self._database.write(lambda session: reading.edit_task(session, tenant_id, task_id, edit), now)

    async def cancel_task(self, tenant_id: str, task_id: str, *, force: bool, now: datetime | None = None) -> str:
        return await self._database.write(
            lambda session: reading.cancel_task(session, tenant_id, task_id, force=force), now
        )

    async def get_dead_letter(self, tenant_id: str, task_id: str, now: datetime | None = None) -> DeadLetter:
        return await self._look(tenant_id, task_id, dead_letters.get_dead_letter, now)

    async def list_dead_letters(
        self,
        tenant_id: str,
        letters: commands.DeadLetterFilter,
        limit: int,
        after: commands.FinishedKey | None,
        now: datetime | None = None,
    ) -> commands.Page[DeadLetter, commands.FinishedKey]:
        await catch_up(self._database, tenant_id, letters.queue, now)
        return await self._database.read(
            lambda session: dead_letters.list_dead_letters(session, tenant_id, letters, limit, after), now
        )

    async def requeue_dead_letter(
        self, tenant_id: str, task_id: str, request: commands.RequeueRequest, now: datetime | None = None
    ) -> commands.Requeued:
        async def requeue(session: Session) -> str:
            await reading.move_task_if_overdue(session, tenant_id, task_id)
            return await dead_letters.requeue_one(session, tenant_id, task_id, request)

        queue = await self._write_or_try(requeue, now, dry_run=request.dry_run)
        left = await self._count(tenant_id, commands.DeadLetterFilter(ids=[task_id]), now)
        return commands.Requeued(1, 0, left.letters - int(request.dry_run), {queue: 1})

    async def requeue_dead_letters(
        self, tenant_id: str, request: commands.RequeueRequest, now: datetime | None = None
    ) -> commands.Requeued:
        await catch_up(self._database, tenant_id, request.filter.queue, now)
        span = Span(0, (await self._count(tenant_id, request.filter, now)).last_id)
        queues: Counter[str] = Counter()
        skipped, taken = 0, Taken()
        while (room := _room(request, queues.total())) > 0:
            requeue = partial(
                dead_letters.requeue_some, tenant_id=tenant_id, request=request, span=span, limit=room, taken=taken
            )
            looked = await self._write_or_try(requeue, now, dry_run=request.dry_run)
            if looked.after_id is None:
                break
            span = replace(span, after_id=looked.after_id)
            skipped += looked.skipped
            taken = looked.taken or taken
            queues.update(looked.queues)
        left = (await self._count(tenant_id, request.filter, now)).letters
        remaining = left - queues.total() if request.dry_run else left
        return commands.Requeued(queues.total(), skipped, remaining, dict(queues))

    async def delete_dead_letter(self, tenant_id: str, task_id: str, now: datetime | None = None) -> None:
        async def delete(session: Session) -> None:
            await reading.move_task_if_overdue(session, tenant_id, task_id)
            await dead_letters.delete_one(session, tenant_id, task_id)

        await self._database.write(delete, now)

    async def purge_dead_letters(
        self, tenant_id: str, letters: commands.DeadLetterFilter, *, dry_run: bool, now: datetime | None = None
    ) -> int:
        await catch_up(self._database, tenant_id, letters.queue, now)
        count = await self._count(tenant_id, letters, now)
        if dry_run:
            return count.letters
        purged, span = 0, Span(0, count.last_id)
        while True:
            delete = partial(dead_letters.delete_some, tenant_id=tenant_id, letters=letters, span=span)
            looked = await self._database.write(delete, now)
            if looked.after_id is None:
                return purged
            span = replace(span, after_id=looked.after_id)
            purged += len(looked.queues)

    async def diagnose(self, now: datetime | None = None) -> Diagnosis:
        return await diagnose(self._database, now)

    async def check(self) -> None:
        await self._database.check()

    async def close(self) -> None:
        await self._database.dialect.close()

    async def _look(
        self,
        tenant_id: str,
        task_id: str,
        look: Callable[[Session, str, str], Awaitable[Result]],
        now: datetime | None,
    ) -> Result:
        """Looks at one task in the state that it has by now: if time has changed it, it is moved first."""

        async def look_unless_overdue(session: Session) -> Result | None:
            if await reading.is_task_overdue(session, tenant_id, task_id):
                return None
            return await look(session, tenant_id, task_id)

        seen = await self._database.read(look_unless_overdue, now)
        if seen is not None:
            return seen
        await self._database.write(lambda session: reading.move_task_if_overdue(session, tenant_id, task_id), now)
        return await self._database.read(lambda session: look(session, tenant_id, task_id), now)

    async def _count(
        self, tenant_id: str, letters: commands.DeadLetterFilter, now: datetime | None
    ) -> dead_letters.Count:
        return await self._database.read(
            lambda session: dead_letters.count_dead_letters(session, tenant_id, letters), now
        )

    async def _write_or_try(
        self, work: Callable[[Session], Awaitable[Result]], now: datetime | None, *, dry_run: bool
    ) -> Result:
        """Does the work, or only sees what it would do."""
        if not dry_run:
            return await self._database.write(work, now)
        return await self._database.rehearse(work, now)


async def _complete(
    items: Sequence[Item],
    outcomes: Sequence[Outcome | None] | None,
    run: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]],
) -> list[Outcome]:
    """Runs the items that a shortcut has left over, and puts the outcomes together in the order of the items.

    What the shortcut did is done: `DoneInPart` says so if the database does not answer for the others.
    """
    if outcomes is None:
        return list(await run(items))
    rest = [item for item, outcome in zip(items, outcomes, strict=True) if outcome is None]
    try:
        of_rest = iter(await run(rest) if rest else ())
    except Unavailable as error:
        if len(rest) == len(items):
            raise
        raise DoneInPart(outcomes, error) from error
    return [next(of_rest) if outcome is None else outcome for outcome in outcomes]


def _room(request: commands.RequeueRequest, requeued: int) -> int:
    return dead_letters.BATCH if request.limit is None else request.limit - requeued


def _ack(task: TaskState, item: commands.AckItem, now: datetime) -> Move:
    return acked(task, now, item.result)


def _nack(task: TaskState, item: commands.NackItem, now: datetime) -> Move:
    if item.retry_at is not None:
        return nacked(task, now, item.retry_at, item.error)
    delay = item.delay_seconds
    if delay is None:
        delay = item.backoff.over(task.policy.backoff).delay_seconds(task.attempts)
    return nacked(task, now, now + timedelta(seconds=delay), item.error)


def _release(task: TaskState, item: commands.ReleaseItem, now: datetime) -> Move:
    return released(task, now)


def _fail(task: TaskState, item: commands.FailItem, now: datetime) -> Move:
    return failed(task, now, item.reason)
