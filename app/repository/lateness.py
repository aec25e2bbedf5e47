"""Tasks that others see so late that they may look behind them already."""

import time
from contextlib import suppress

from app.domain.errors import Unavailable
from app.repository import starts
from app.repository.session import Database, Scope, Session


async def count_if_late(database: Database, scope: Scope, began_at: float) -> None:
    """Counts tasks like those that come back, if it took long until they were accepted into these queues.

    Of the time for which a claim looks back, one half is for them and one for the claim: its own clock and what it sees
    are not of quite the same moment.
    """
    if not database.dialect.remembers_starts or time.monotonic() - began_at < starts.LATE.total_seconds() / 2:
        return
    # They are accepted, whatever becomes of this: without it they are found a little later.
    with suppress(Unavailable):
        await database.write(_count, scope=scope)


async def _count(session: Session) -> None:
    await session.count_returns({queue.id for queue in session.queues.values()})
