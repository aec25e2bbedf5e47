"""Whose turn it is among queues of equal priority."""

from collections import OrderedDict
from collections.abc import Sequence

MAX_REMEMBERED = 10_000


class Turns:
    """Remembers which queue was served last to those who ask for the same queues, and begins behind it."""

    def __init__(self) -> None:
        self._last_served: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def order(self, tenant_id: str, queues: Sequence[str]) -> list[str]:
        """The queues, each once, beginning with the one whose turn it is."""
        names = list(dict.fromkeys(queues))
        last = self._last_served.get((tenant_id, *names))
        start = names.index(last) + 1 if last is not None else 0
        return names[start:] + names[:start]

    def served(self, tenant_id: str, queues: Sequence[str], queue: str) -> None:
        key = (tenant_id, *dict.fromkeys(queues))
        if len(key) <= 2:
            return
        self._last_served[key] = queue
        self._last_served.move_to_end(key)
        if len(self._last_served) > MAX_REMEMBERED:
            self._last_served.popitem(last=False)
