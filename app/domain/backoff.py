"""How long a task that failed waits before its next attempt."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `base · factor^(attempts-1)`, capped, then spread by ± jitter."""

    base_seconds: float = 5.0
    factor: float = 2.0
    max_seconds: float = 3600.0
    jitter: float = 0.2

    def delay_seconds(self, attempts: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """The delay after the given number of attempts, at least one."""
        return self._capped_seconds(attempts) * (1.0 + uniform(-self.jitter, self.jitter))

    def _capped_seconds(self, attempts: int) -> float:
        try:
            return min(self.base_seconds * self.factor ** (attempts - 1), self.max_seconds)
        except OverflowError:
            return self.max_seconds if self.base_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class BackoffOverride:
    """What a caller wants otherwise than the queue's policy; None leaves it as it is."""

    base_seconds: float | None = None
    factor: float | None = None
    max_seconds: float | None = None
    jitter: float | None = None

    def over(self, policy: Backoff) -> Backoff:
        given = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        return replace(policy, **given)


QUEUE_BACKOFF = BackoffOverride()
