"""Telling those who wait, here and in other replicas, that there is work."""

import asyncio
import logging
from collections.abc import Mapping

from app.repository.protocol import Bell, Repository
from app.service.waiters import Waiters

RING_INTERVAL_SECONDS = 0.01
LISTEN_AGAIN_SECONDS = 0.5

logger = logging.getLogger(__name__)


class WakeUps:
    """Wakes at once here, and in other replicas by the bell; where there is none, or it fails, they poll."""

    def __init__(self, waiters: Waiters, repository: Repository, bell: Bell | None, *, poll_seconds: float) -> None:
        self._waiters = waiters
        self._repository = repository
        self._bell = bell
        self._poll_seconds = poll_seconds
        self._to_ring: set[tuple[str, str]] = set()
        self._has_to_ring = asyncio.Event()

    def announce(self, tenant_id: str, tasks: Mapping[str, int]) -> None:
        """There are so many new tasks in these queues."""
        for queue, count in tasks.items():
            woken = self._waiters.wake(tenant_id, queue, count)
            if self._bell is not None:
                self._to_ring.add((tenant_id, queue))
                # Where those here are about to take all of it, others hear a moment later, and not in their way.
                seconds = 0.0 if woken < count else RING_INTERVAL_SECONDS
                asyncio.get_running_loop().call_later(seconds, self._has_to_ring.set)

    async def run(self) -> None:
        """Rings, listens and polls until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._poll())
            if self._bell is not None:
                group.create_task(self._ring(self._bell))
                group.create_task(self._listen(self._bell))

    async def _ring(self, bell: Bell) -> None:
        while True:
            await self._has_to_ring.wait()
            self._has_to_ring.clear()
            queues, self._to_ring = self._to_ring, set()
            try:
                await bell.ring(queues)
            except Exception as error:  # whatever it is, the others poll
                logger.warning("other replicas not woken: %s", type(error).__name__)
            # A queue that fills fast is told of once in a while, not for every task.
            await asyncio.sleep(RING_INTERVAL_SECONDS)

    async def _listen(self, bell: Bell) -> None:
        while True:
            try:
                await bell.listen(self._waiters.wake)
            except Exception as error:  # whatever it is, the connection is made again
                logger.warning("not listening to other replicas: %s", type(error).__name__)
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _poll(self) -> None:
        """The safety net: one look a tenant for all who wait, however many they are."""
        while True:
            await asyncio.sleep(self._poll_seconds)
            for tenant_id, queues in self._waiters.waited_for().items():
                try:
                    for queue in await self._repository.queues_with_work(tenant_id, queues):
                        self._waiters.wake(tenant_id, queue)
                except Exception as error:  # whatever it is, the next look may go well
                    logger.warning("not looking for work: %s", type(error).__name__)
                    # Who waits for a database that does not answer is told so, not left to wait.
                    for queue in queues:
                        self._waiters.wake_everybody(tenant_id, queue)
