"""Background work in every replica: nothing in the contract depends on it, it only keeps the tables small."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from app.domain.topology import Resting
from app.metrics import Metrics
from app.repository.protocol import MaintenanceRepository
from app.service.wakeups import WakeUps

OFTEN_SECONDS = 1.0
SELDOM_SECONDS = 10.0
# Where there was something to do, there is likely more; the pause lets others at the database.
BUSY_SECONDS = 0.05

logger = logging.getLogger(__name__)

# Tells how much it found to do.
Clear = Callable[[], Awaitable[int]]
# Tells how long to rest before the next round.
Duty = Callable[[], Awaitable[float]]


class Janitor:
    """Moves what time has changed, and clears away what nobody needs any longer, in small batches."""

    def __init__(self, repository: MaintenanceRepository, metrics: Metrics, wakeups: WakeUps) -> None:
        self._repository = repository
        self._metrics = metrics
        self._wakeups = wakeups

    async def run(self) -> None:
        """Works until cancelled."""
        repository = self._repository
        often = {
            "move_overdue": repository.move_overdue,
            "bury_ended_queues": repository.bury_ended_queues,
            "clear_graves": repository.clear_graves,
        }
        seldom = {
            "drop_old_tombstones": repository.drop_old_tombstones,
            "drop_old_history": repository.drop_old_history,
            "drop_old_dead_letters": repository.drop_old_dead_letters,
            "drop_old_operations": repository.drop_old_operations,
        }
        async with asyncio.TaskGroup() as group:
            for name, duty in often.items():
                group.create_task(self._repeat(name, partial(self._clear, name, duty, OFTEN_SECONDS)))
            for name, duty in seldom.items():
                group.create_task(self._repeat(name, partial(self._clear, name, duty, SELDOM_SECONDS)))
            group.create_task(self._repeat("advance_operations", self._advance_operation))

    async def _repeat(self, name: str, duty: Duty) -> None:
        while True:
            rest_seconds = OFTEN_SECONDS
            try:
                rest_seconds = await duty()
            except Exception as error:  # whatever it is, the next round may go well
                self._metrics.janitor_errors.labels(name).inc()
                logger.warning("janitor: %s: %s", name, type(error).__name__)
            await asyncio.sleep(rest_seconds)

    async def _clear(self, name: str, clear: Clear, seconds: float) -> float:
        done = await clear()
        self._metrics.janitor_rows.labels(name).inc(done)
        return BUSY_SECONDS if done else seconds

    async def _advance_operation(self) -> float:
        advanced = await self._repository.advance_operation()
        if isinstance(advanced, Resting):
            return OFTEN_SECONDS if advanced.seconds is None else min(OFTEN_SECONDS, advanced.seconds)
        self._wakeups.announce(advanced.tenant_id, advanced.queues)
        self._metrics.janitor_rows.labels("advance_operations").inc(sum(advanced.queues.values()))
        # Another one may be due.
        return 0.0
