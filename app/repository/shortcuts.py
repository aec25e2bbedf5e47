"""What is asked for most often, by a shorter way where a database has one.

A shortcut does only what is plain. What it leaves over, None among its outcomes, goes the general way, where everything
is decided that can be decided. So nothing depends on a shortcut but speed.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from app.domain.commands import AckItem, Reserved, ReserveRequest, Settled
from app.domain.task import Enqueued, NewTask


class Shortcuts(Protocol):
    """The shortcuts of a dialect."""

    async def enqueue_batches(
        self, tenant_id: str, batches: Sequence[Sequence[NewTask]], now: datetime | None
    ) -> list[list[Enqueued]] | None:
        """Accepts all of the tasks, or leaves all of them."""

    async def reserve_many(self, requests: Sequence[ReserveRequest], now: datetime | None) -> list[Reserved | None]:
        """Leases to those of the requests that can be served at once."""

    async def ack_many(self, tenant_id: str, items: Sequence[AckItem], now: datetime | None) -> list[Settled | None]:
        """Acks what can be acked without a decision."""
