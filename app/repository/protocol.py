"""What the services ask of a store, in batches: one item is a batch of one.

Each call is one transaction (the bulk calls on dead letters: several small ones). Outcomes come back in input order.
An item that is refused is answered by an error as a value; a call that fails as a whole raises. `now` replaces the
database's clock.
"""

from collections.abc import Callable, Collection, Sequence
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
from app.domain.doctor import Diagnosis
from app.domain.errors import TaskExists
from app.domain.queue import Queue, QueueSettings
from app.domain.task import Attempt, DeadLetter, Enqueued, NewTask, Task
from app.domain.topology import Advanced, Explanation, NameKey, Operation, Published, QueueStats, Resting, Topic

ChangeSettings = Callable[[QueueSettings], QueueSettings]


class Repository(Protocol):
    """A store of tasks."""

    async def enqueue_many(
        self, tenant_id: str, tasks: Sequence[NewTask], now: datetime | None = None
    ) -> list[Enqueued]:
        """Accepts all of the tasks or, raising `TaskExists`, none."""

    async def enqueue_batches(
        self, tenant_id: str, batches: Sequence[Sequence[NewTask]], now: datetime | None = None
    ) -> list[list[Enqueued] | TaskExists]:
        """Accepts all tasks of a batch or none, each batch by itself."""

    async def reserve_many(self, requests: Sequence[ReserveRequest], now: datetime | None = None) -> list[Reserved]:
        """Leases tasks to requests of one wish, and deals them out in the order of the requests."""

    async def queues_with_work(self, tenant_id: str, queues: Collection[str], now: datetime | None = None) -> list[str]:
        """Those of the queues in which a reserve may find something."""

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

    async def diagnose(self, now: datetime | None = None) -> Diagnosis:
        """Looks at the health of the database."""

    async def check(self) -> None:
        """Raises unless the database answers and its schema is the one this code was written for."""

    async def close(self) -> None: ...


class TopologyRepository(Protocol):
    """A store of queues and topics."""

    async def put_queue(
        self, tenant_id: str, name: str, settings: QueueSettings, now: datetime | None = None
    ) -> tuple[Queue, bool]:
        """Declares the queue or changes all of its settings; whether it is new. Raises `QueueExclusive`."""

    async def patch_queue(
        self, tenant_id: str, name: str, change: ChangeSettings, now: datetime | None = None
    ) -> Queue: ...

    async def get_queue(self, tenant_id: str, name: str, now: datetime | None = None) -> Queue: ...

    async def list_queues(
        self, tenant_id: str, topic: str | None, limit: int, after: NameKey | None, now: datetime | None = None
    ) -> Page[Queue, NameKey]: ...

    async def delete_queue(self, tenant_id: str, name: str, now: datetime | None = None) -> None: ...

    async def set_paused(self, tenant_id: str, name: str, *, paused: bool, now: datetime | None = None) -> Queue: ...

    async def keep_alive(self, tenant_id: str, name: str, seconds: float, now: datetime | None = None) -> datetime: ...

    async def purge_queue(self, tenant_id: str, name: str, now: datetime | None = None) -> int: ...

    async def cleanup_queue(
        self, tenant_id: str, name: str, older_than_seconds: float, now: datetime | None = None
    ) -> int: ...

    async def cleanup_topic(
        self, tenant_id: str, name: str, older_than_seconds: float, now: datetime | None = None
    ) -> int: ...

    async def queue_stats(
        self, tenant_id: str, name: str, bound: int | None, now: datetime | None = None
    ) -> QueueStats:
        """Counts each state up to the bound, or without one all of it, which may take long."""

    async def explain_task(
        self, tenant_id: str, task_id: str, bound: int, now: datetime | None = None
    ) -> Explanation: ...

    async def put_topic(self, tenant_id: str, name: str, now: datetime | None = None) -> tuple[Topic, bool]: ...

    async def get_topic(self, tenant_id: str, name: str, now: datetime | None = None) -> Topic: ...

    async def list_topics(
        self, tenant_id: str, limit: int, after: NameKey | None, now: datetime | None = None
    ) -> Page[Topic, NameKey]: ...

    async def delete_topic(self, tenant_id: str, name: str, now: datetime | None = None) -> None: ...

    async def publish(self, tenant_id: str, topic: str, message: NewTask, now: datetime | None = None) -> Published: ...

    async def start_operation(
        self, tenant_id: str, request: RequeueRequest, rate_per_second: float, now: datetime | None = None
    ) -> Operation: ...

    async def get_operation(self, tenant_id: str, operation_id: str, now: datetime | None = None) -> Operation: ...

    async def stop_operation(self, tenant_id: str, operation_id: str, now: datetime | None = None) -> Operation: ...


class MaintenanceRepository(Protocol):
    """What a janitor does, a small batch a call: each tells how much it found to do."""

    async def move_overdue(self, now: datetime | None = None) -> int: ...

    async def bury_ended_queues(self, now: datetime | None = None) -> int: ...

    async def clear_graves(self, now: datetime | None = None) -> int: ...

    async def drop_old_tombstones(self, now: datetime | None = None) -> int: ...

    async def drop_old_history(self, now: datetime | None = None) -> int: ...

    async def drop_old_dead_letters(self, now: datetime | None = None) -> int: ...

    async def drop_old_operations(self, now: datetime | None = None) -> int: ...

    async def advance_operation(self, now: datetime | None = None) -> Advanced | Resting: ...


class Bell(Protocol):
    """Tells other replicas that there is work in a queue, where the database can carry such a message."""

    async def ring(self, queues: Collection[tuple[str, str]]) -> None:
        """Tells of (tenant, queue) pairs; may fail, and costs no more than latency if it does."""

    async def listen(self, heard: Callable[[str, str], object]) -> None:
        """Calls `heard` for what others tell, until the connection is lost or the task is cancelled."""

    async def close(self) -> None: ...
