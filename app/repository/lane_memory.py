"""PostgreSQL: what a replica remembers of lanes, as the statements take it and tell it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product

from app.domain.commands import ReserveRequest
from app.domain.queue import Queue
from app.repository.connection import Row
from app.repository.session import Session
from app.repository.starts import NO_START, Key, LaneEnd, Memory, Position, Start, Starts, start_behind

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Beginning:
    """A lane, and what is remembered of it."""

    queue_id: int
    type: str | None
    key: Key
    start: Start | None = None
    had_ready: bool = False
    lease_ends_at: datetime | None = None

    @property
    def lives_until(self) -> float:
        return 0.0 if self.start is None else self.start.lives_until

    def parameters(self) -> dict[str, object]:
        return {"queue_id": self.queue_id, **(NO_START if self.start is None else self.start.parameters())}

    def upcoming(self) -> dict[str, object]:
        """What is looked for when the next task is asked for that is due, or comes back."""
        return {
            "queue_id": self.queue_id,
            "type": self.type,
            "looked_until": None if self.start is None else self.start.looked_until,
            "knows_leases": self.lease_ends_at is not None,
        }

    def end(self, looked_at: datetime, last: Row) -> LaneEnd:
        """Where a claim left the lane, by the last of its rows."""
        start = start_behind(self.queue_id, last["returns"], looked_at, _position(last))
        return LaneEnd(self.key, start, self.start, leased=last["position"] is not None)


class LaneMemory:
    """Where lanes begin, whether there was anything in them, and when the first of their leases ends."""

    def __init__(self) -> None:
        self.starts = Starts()
        self.had_ready: Memory[bool] = Memory()
        self.lease_ends: Memory[datetime] = Memory()

    def begin(self, session: Session, wish: ReserveRequest, lanes: Iterable[tuple[int, str | None]]) -> list[Beginning]:
        """What is remembered of lanes, by queue and type: nothing, if it happens at another time than now."""
        names = {queue.id: name for name, queue in session.queues.items()}
        return [self._begin(session, queue_id, (wish.tenant_id, names[queue_id], type_)) for queue_id, type_ in lanes]

    def begin_queues(self, session: Session, wish: ReserveRequest, queues: Sequence[Queue]) -> list[Beginning]:
        """Of each queue the lane that is forgotten first: any of them tells until when nothing was overdue in it."""
        lanes = self.begin(session, wish, product((queue.id for queue in queues), wish.types or (None,)))
        lanes.sort(key=lambda lane: lane.lives_until, reverse=True)
        return list({lane.queue_id: lane for lane in lanes}.values())

    def _begin(self, session: Session, queue_id: int, key: Key) -> Beginning:
        if not session.is_now:
            return Beginning(queue_id, key[-1], key)
        ends_at = self.lease_ends.find(key)
        # A lease that has ended since tells nothing of the next.
        known = ends_at if ends_at is not None and ends_at > session.now else None
        return Beginning(queue_id, key[-1], key, self.starts.find(key), self.had_ready.find(key) is True, known)

    def learn(self, ends: Sequence[LaneEnd]) -> None:
        for end in ends:
            self.starts.learn(end.key, end.start, end.given)
            if end.leased:
                self.lease_ends.forget(end.key)

    def learn_leases(self, lanes: Sequence[Beginning], rows: Sequence[Row]) -> None:
        ends = {(row["queue_id"], row["type"]): row["lease_until"] or NEVER for row in rows}
        for lane in lanes:
            if lane.lease_ends_at is None:
                self.lease_ends.keep(lane.key, ends[lane.queue_id, lane.type])


def ends_of(lanes: Sequence[Beginning], rows: Sequence[Row], looked_at: datetime) -> list[LaneEnd]:
    """Where a claim left each lane, by its rows in order."""
    last = {(row["lane_queue_id"], row["lane_type"]): row for row in rows}
    return [lane.end(looked_at, last[lane.queue_id, lane.type]) for lane in lanes]


def _position(row: Row) -> Position | None:
    """Behind the last task that was leased, or else before the first that was seen."""
    if row["position"] is not None:
        return row["priority"], row["available_at"], row["seq"]
    if row["first_seq"] is not None:
        return row["first_priority"], row["first_at"], row["first_seq"] - 1
    return None
