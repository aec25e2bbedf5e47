"""What a queue decides for the tasks in it that do not say otherwise."""

from dataclasses import dataclass, field

from app.domain.backoff import Backoff


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The policy of one queue; the defaults are those of a queue that nobody declared."""

    max_attempts: int = 5
    lease_seconds: float = 30.0
    max_lease_seconds: float = 43200.0
    backoff: Backoff = field(default_factory=Backoff)
    history_days: float | None = 14.0


DEFAULT_QUEUE_SETTINGS = QueueSettings()
