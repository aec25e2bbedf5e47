"""How connections are pooled, the same for every dialect."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolSettings:
    size: int = 10
    timeout_seconds: float = 5.0
    lock_timeout_seconds: float = 1.0

    @property
    def wait_seconds(self) -> float:
        """How long to wait for a connection of the pool: less than for the answer as a whole."""
        return 0.8 * self.timeout_seconds
