"""Leasing tasks to workers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.domain.commands import Reserved, ReserveRequest
from app.domain.errors import InvalidRequest
from app.domain.lease_token import new_lease_tokens
from app.domain.queue import DEFAULT_QUEUE_SETTINGS, Queue
from app.domain.task import ReservedTask
from app.repository.dialect import Claimed, Grant, Lane
from app.repository.limiting import Allowance, allow, take
from app.repository.moving import OVERDUE_BATCH, move_overdue
from app.repository.records import live_task_of
from app.repository.session import Session

MAX_ROUNDS = 5


async def reserve_many(session: Session, requests: Sequence[ReserveRequest]) -> list[Reserved]:
    """Leases what is first in the queues by now, and deals it out among requests of one wish, in their order.

    Nobody need have moved there what became due.
    """
    wish = requests[0]
    _check_lease_seconds(session, wish)
    living = session.living_queues()
    open_ones = [living[name] for name in wish.queues if name in living and not living[name].settings.paused]
    if not open_ones:
        return [Reserved([], session.now) for _ in requests]
    return await Reserving(session, wish, open_ones).serve(requests)


class Reserving:
    """One transaction that leases tasks out of some open queues."""

    def __init__(self, session: Session, wish: ReserveRequest, queues: Sequence[Queue]) -> None:
        self._session = session
        self._wish = wish
        self._queues = queues

    async def serve(self, requests: Sequence[ReserveRequest]) -> list[Reserved]:
        more = await self._catch_up()
        allowance = await allow(self._session, self._queues, sum(request.limit for request in requests))
        lanes = _lanes(self._session, self._wish, allowance)
        shares = await self._deal(requests, [lane for lane in lanes if lane.room > 0], more=more)
        allowance = await take(self._session, allowance, [lease.task.queue for share in shares for lease in share])
        next_at = None if all(shares) else await self._next_available_at(lanes, allowance)
        return [self._reserved(share, next_at) for share in shares]

    def _reserved(self, share: Sequence[ReservedTask], next_at: datetime | None) -> Reserved:
        # What was last done to a task may be later than when this transaction began: its lease begins after that.
        server_time = max([self._session.now, *(lease.task.updated_at for lease in share)])
        return Reserved(share, server_time, None if share else next_at)

    async def _deal(
        self, requests: Sequence[ReserveRequest], lanes: Sequence[Lane], *, more: bool
    ) -> list[list[ReservedTask]]:
        """Everybody's share. Large tasks end a claim early: then those who came away empty are served again."""
        shares: list[list[ReservedTask]] = [[] for _ in requests]
        hungry = list(range(len(requests)))
        while hungry and lanes:
            owners = [index for index in hungry for _ in range(requests[index].limit)]
            grants = _grants([requests[index] for index in owners])
            claimed = await self._claim(lanes, grants, more=more)
            for index, grant, row in zip(owners, grants, claimed.rows, strict=False):
                shares[index].append(ReservedTask(live_task_of(row), grant.token))
            if sum(row["size"] for row in claimed.rows) < self._wish.max_bytes:
                break
            hungry = [index for index in hungry if not shares[index]]
            lanes = _with_less_room(lanes, claimed)
        return shares

    async def _claim(self, lanes: Sequence[Lane], grants: Sequence[Grant], *, more: bool) -> Claimed:
        claimed = await self._claim_once(lanes, grants)
        while more and not claimed.rows:
            # What is wanted may stand behind very many others that are overdue.
            more = await self._catch_up()
            claimed = await self._claim_once(lanes, grants)
        if not more:
            self._session.once_committed.append(claimed.learn)
        return claimed

    async def _claim_once(self, lanes: Sequence[Lane], grants: Sequence[Grant]) -> Claimed:
        claimed = Claimed([])
        for _ in range(MAX_ROUNDS):
            claimed = await self._session.dialect.claim(self._session, self._wish, lanes, grants)
            if not claimed.raced:
                break
        return claimed

    async def _catch_up(self) -> bool:
        """Moves what is overdue in the queues, a batch at most; whether there may be more."""
        if not await self._session.dialect.has_overdue(self._session, self._wish, self._queues):
            return False
        ids = [queue.id for queue in self._queues]
        return await move_overdue(self._session, self._wish.tenant_id, ids) >= OVERDUE_BATCH

    async def _next_available_at(self, lanes: Sequence[Lane], allowance: Allowance) -> datetime | None:
        held_back = allowance.held_back_by_rate(self._session.now)
        free = await self._next_due_at([lane for lane in lanes if lane.queue_id not in held_back])
        held = [await self._next_allowed_at(queue_id, lanes, allowance) for queue_id in held_back]
        return min((at for at in (free, *held) if at is not None), default=None)

    async def _next_due_at(self, lanes: Sequence[Lane]) -> datetime | None:
        return await self._session.dialect.next_due_at(self._session, self._wish, lanes) if lanes else None

    async def _next_allowed_at(self, queue_id: int, lanes: Sequence[Lane], allowance: Allowance) -> datetime | None:
        """When a queue that its rate holds back delivers again: it must have something, and be allowed to."""
        allowed_at = allowance.next_at(queue_id, self._session.now)
        if await self._session.dialect.has_ready(self._session, self._wish, queue_id):
            return allowed_at
        due_at = await self._next_due_at([lane for lane in lanes if lane.queue_id == queue_id])
        return None if due_at is None else max(due_at, allowed_at)


async def queues_with_work(session: Session) -> list[str]:
    """Those of the queues, of those that are not paused, in which something is ready or overdue."""
    open_ones = {queue.id: name for name, queue in session.living_queues().items() if not queue.settings.paused}
    if not open_ones:
        return []
    ready = await session.rows("queues_with_ready", queue_ids=list(open_ones))
    overdue = await session.rows("queues_with_overdue", queue_ids=list(open_ones), now=session.now)
    return [open_ones[queue_id] for queue_id in {row["queue_id"] for row in (*ready, *overdue)}]


def _grants(owners: Sequence[ReserveRequest]) -> list[Grant]:
    """A lease for each of the owners, who may be named many times."""
    tokens = new_lease_tokens(len(owners))
    return [Grant(token, owner.worker_id or "") for token, owner in zip(tokens, owners, strict=True)]


def _check_lease_seconds(session: Session, request: ReserveRequest) -> None:
    if request.lease_seconds is None:
        return
    living = session.living_queues()
    for name in request.queues:
        queue = living.get(name)
        longest = (DEFAULT_QUEUE_SETTINGS if queue is None else queue.settings).max_lease_seconds
        if request.lease_seconds > longest:
            raise InvalidRequest(
                f"lease_seconds is over the max_lease_seconds of the queue {name!r}, {longest:g}",
                location=("body", "lease_seconds"),
            )


def _lanes(session: Session, request: ReserveRequest, allowance: Allowance) -> list[Lane]:
    types: Sequence[str | None] = request.types or (None,)
    return [
        Lane(
            queue_id=queue.id,
            type=type_,
            place=place,
            room=allowance.rooms[queue.id],
            lease_until=session.now + timedelta(seconds=request.lease_seconds or queue.settings.lease_seconds),
        )
        for place, queue in enumerate(allowance.queues)
        for type_ in types
    ]


def _with_less_room(lanes: Sequence[Lane], claimed: Claimed) -> list[Lane]:
    taken = Counter(row["queue_id"] for row in claimed.rows)
    left = (replace(lane, room=lane.room - taken[lane.queue_id]) for lane in lanes)
    return [lane for lane in left if lane.room > 0]
