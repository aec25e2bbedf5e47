"""What the services ask of a store, in batches: one item is a batch of one.

Each call is one transaction (the bulk calls on dead letters: several small ones). Outcomes come back in input order.
An item that is refused is answered by an error as a value; a call that fails as a whole raises. `now` replaces the
database's clock.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from app.domain.commands import (
    AckItem,
    AttemptKey,
    DeadLetterFilter,
    ExtendItem,
    ExtendOutcome,
    FailItem,
    FinishedKey,
    LiveKey,
    NackItem,
    Page,
    ReleaseItem,
    Requeued,
    RequeueRequest,
    Reserved,
    ReserveRequest,
    SettleOutcome,
    TaskEdit,
    TaskFilter,
)
from app.domain.task import Attempt, DeadLetter, Enqueued, NewTask, Task


class Repository(Protocol):
    """A store of tasks."""

    async def enqueue_many(
        self, tenant_id: str, tasks: Sequence[NewTask], now: datetime | None = None
    ) -> list[Enqueued]:
        """Accepts all of the tasks or, raising `TaskExists`, none."""

    async def reserve_many(self, request: ReserveRequest, now: datetime | None = None) -> Reserved: ...

    async def extend_many(
        self, tenant_id: str, items: Sequence[ExtendItem], now: datetime | None = None
    ) -> list[ExtendOutcome]: ...

    async def ack_many(
        self, tenant_id: str, items: Sequence[AckItem], now: datetime | None = None
    ) -> list[SettleOutcome]: ...

    async def nack_many(
        self, tenant_id: str, items: Sequence[NackItem], now: datetime | None = None
    ) -> list[SettleOutcome]: ...

    async def release_many(
        self, tenant_id: str, items: Sequence[ReleaseItem], now: datetime | None = None
    ) -> list[SettleOutcome]: ...

    async def fail_many(
        self, tenant_id: str, items: Sequence[FailItem], now: datetime | None = None
    ) -> list[SettleOutcome]: ...

    async def get_task(self, tenant_id: str, task_id: str, now: datetime | None = None) -> Task:
        """The live task of that id, else the one that finished last; raises `TaskNotFound`."""

    async def list_live(
        self, tenant_id: str, task_filter: TaskFilter, limit: int, after: LiveKey | None, now: datetime | None = None
    ) -> Page[Task, LiveKey]: ...

    async def list_finished(
        self,
        tenant_id: str,
        task_filter: TaskFilter,
        limit: int,
        after: FinishedKey | None,
        now: datetime | None = None,
    ) -> Page[Task, FinishedKey]: ...

    async def list_attempts(
        self, tenant_id: str, task_id: str, limit: int, after: AttemptKey | None, now: datetime | None = None
    ) -> Page[Attempt, AttemptKey]:
        """The attempts of a task in order of start, the running one last; raises `TaskNotFound`."""

    async def edit_task(self, tenant_id: str, task_id: str, edit: TaskEdit, now: datetime | None = None) -> Task: ...

    async def cancel_task(self, tenant_id: str, task_id: str, *, force: bool, now: datetime | None = None) -> str:
        """Cancels the task and tells its queue."""

    async def get_dead_letter(self, tenant_id: str, task_id: str, now: datetime | None = None) -> DeadLetter: ...

    async def list_dead_letters(
        self,
        tenant_id: str,
        letters: DeadLetterFilter,
        limit: int,
        after: FinishedKey | None,
        now: datetime | None = None,
    ) -> Page[DeadLetter, FinishedKey]: ...

    async def requeue_dead_letter(
        self, tenant_id: str, task_id: str, request: RequeueRequest, now: datetime | None = None
    ) -> Requeued:
        """Sends the newest dead letter of that task back; raises `TaskNotFound` or a `Conflict`."""

    async def requeue_dead_letters(
        self, tenant_id: str, request: RequeueRequest, now: datetime | None = None
    ) -> Requeued: ...

    async def delete_dead_letter(self, tenant_id: str, task_id: str, now: datetime | None = None) -> None: ...

    async def purge_dead_letters(
        self, tenant_id: str, letters: DeadLetterFilter, *, dry_run: bool, now: datetime | None = None
    ) -> int: ...

    async def check(self) -> None:
        """Raises unless the database answers and its schema is the one this code was written for."""

    async def close(self) -> None: ...
