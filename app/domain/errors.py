"""Everything that can be refused, and why.

    LeaseMQError
    ├── InvalidRequest          the request makes no sense; nothing of it was applied
    │   └── ContentTooLarge     … because a part of it is over its size
    ├── UnsupportedMediaType    a body that is not declared as JSON
    ├── Forbidden               the caller may not ask that here
    ├── NotFound                nothing of that name in this tenant
    │   ├── TaskNotFound
    │   ├── QueueNotFound
    │   ├── TopicNotFound
    │   └── OperationNotFound
    ├── Conflict                the state of things does not allow it
    │   ├── QueueExclusive      an exclusive queue of that name is alive
    │   ├── QueueNotExclusive   an ordinary queue needs no keep-alive
    │   ├── TaskExists          a caller-given id belongs to a live task
    │   ├── DedupeConflict      the dedupe key of a dead task is held by a live one
    │   ├── TaskLeased          edit or cancel of a task that somebody works on
    │   ├── TaskFinished        edit or cancel of a task that is over
    │   └── LeaseRefused        the lease token does not give the right to do this
    │       ├── LeaseExpired    it was the last one given out, and its lease ran out
    │       ├── LeaseMismatch   the task is leased under another token
    │       └── TaskNotLeased   neither: the task is not leased now
    ├── Unavailable             the database does not answer, or the server sheds load
    │   ├── Contended           or somebody else holds what is needed
    │   └── DoneInPart          and it did so when part of a request was done
    └── CallerGone              nobody waits for the answer any more

`code` is what clients branch on; which HTTP status goes with it is the API's business.
"""

from collections.abc import Sequence
from typing import Any, ClassVar


class LeaseMQError(Exception):
    """The root of the tree: a refusal with a stable `code` and a sentence for people."""

    code: ClassVar[str] = "internal"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InvalidRequest(LeaseMQError):
    code = "invalid_request"

    def __init__(self, detail: str, *, location: tuple[str | int, ...] = ()) -> None:
        super().__init__(detail)
        self.location = location


class ContentTooLarge(InvalidRequest):
    code = "payload_too_large"


class UnsupportedMediaType(LeaseMQError):
    code = "unsupported_media_type"


class Forbidden(LeaseMQError):
    code = "forbidden"


class NotFound(LeaseMQError):
    code = "not_found"


class TaskNotFound(NotFound):
    code = "task_not_found"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"There is no task {task_id!r} in this tenant.")


class QueueNotFound(NotFound):
    code = "queue_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no queue {name!r} declared in this tenant.")


class TopicNotFound(NotFound):
    code = "topic_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no topic {name!r} in this tenant.")


class OperationNotFound(NotFound):
    code = "operation_not_found"

    def __init__(self, operation_id: str) -> None:
        super().__init__(f"There is no operation {operation_id!r} in this tenant.")


class Conflict(LeaseMQError):
    """The state of things does not allow it."""


class QueueExclusive(Conflict):
    code = "queue_exclusive"

    def __init__(self, name: str) -> None:
        super().__init__(f"The queue {name!r} is exclusive, and somebody keeps it alive.")


class QueueNotExclusive(Conflict):
    code = "queue_not_exclusive"

    def __init__(self, name: str) -> None:
        super().__init__(f"The queue {name!r} is not exclusive: it stays without being kept alive.")


class TaskExists(Conflict):
    code = "task_exists"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"The id {task_id!r} belongs to a live task.")


class DedupeConflict(Conflict):
    code = "dedupe_conflict"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"The dedupe key of the dead task {task_id!r} is held by another task.")


class TaskLeased(Conflict):
    code = "task_leased"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"The task {task_id!r} is leased.")


class TaskFinished(Conflict):
    code = "task_finished"

    def __init__(self, task_id: str, status: str) -> None:
        super().__init__(f"The task {task_id!r} is {status} already.")


class LeaseRefused(Conflict):
    """The lease token does not give the right to do this; nothing was changed."""


class LeaseExpired(LeaseRefused):
    code = "lease_expired"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"The lease on the task {task_id!r} ran out.")


class LeaseMismatch(LeaseRefused):
    code = "lease_mismatch"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"The task {task_id!r} is leased under another token.")


class TaskNotLeased(LeaseRefused):
    code = "task_not_leased"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"The task {task_id!r} is not leased.")


class Unavailable(LeaseMQError):
    """`applied` tells what became of the request: False, or None where a commit's outcome is unknown."""

    code = "unavailable"

    def __init__(self, detail: str, *, applied: bool | None = False) -> None:
        super().__init__(detail)
        self.applied = applied


class Contended(Unavailable):
    """Somebody else holds a row that the request needs, for too long; nothing was applied."""


class DoneInPart(Unavailable):
    """Some of the items were done before the database stopped answering: `outcomes`, with None for the others."""

    def __init__(self, outcomes: Sequence[Any], error: Unavailable) -> None:
        super().__init__(error.detail, applied=None)
        self.outcomes = outcomes
        self.error = error


class CallerGone(LeaseMQError):
    """The caller hung up before its turn came; nothing was applied."""

    code = "caller_gone"

    def __init__(self) -> None:
        super().__init__("The caller has gone.")
