"""What workers were given and gave back, kept by the test to hold the service to it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Json = Mapping[str, Any]


@dataclass
class Delivery:
    """One lease as its worker saw it, with the host's time when it came.

    `ended` tells how the worker let go of it, None while it has not.
    """

    task_id: str
    attempt_no: int
    lease_until: datetime
    received_at: datetime
    ended: str | None = None


class Ledger:
    """All deliveries by task; the databases' clock is taken to be the host's."""

    def __init__(self) -> None:
        self.by_task: dict[str, list[Delivery]] = defaultdict(list)
        self.held_twice: list[str] = []

    def reserved(self, reply: Json) -> list[Delivery]:
        """Notes what a reserve gave, in order."""
        return [self._delivered(task, datetime.now(UTC)) for task in reply["tasks"]]

    def _delivered(self, task: Json, now: datetime) -> Delivery:
        delivery = Delivery(task["id"], task["attempts"], datetime.fromisoformat(task["lease_until"]), now)
        self.held_twice += [f"{other} and {delivery}" for other in self.by_task[task["id"]] if _both(other, delivery)]
        self.by_task[task["id"]].append(delivery)
        return delivery

    def deliveries(self) -> Iterable[Delivery]:
        return (delivery for deliveries in self.by_task.values() for delivery in deliveries)

    def attempt_numbers(self) -> dict[str, list[int]]:
        """By task, the numbers of the attempts that count: a released delivery is no attempt."""
        counted: dict[str, list[int]] = defaultdict(list)
        for delivery in self.deliveries():
            if delivery.ended != "release":
                counted[delivery.task_id].append(delivery.attempt_no)
        return {task_id: sorted(numbers) for task_id, numbers in counted.items()}


def _both(earlier: Delivery, later: Delivery) -> bool:
    """Whether the later one came while the earlier lease ran.

    A worker notes that it lets go before its call leaves, so an open delivery is a lease until its end.
    """
    return earlier.ended is None and later.received_at < min(earlier.lease_until, later.lease_until)
