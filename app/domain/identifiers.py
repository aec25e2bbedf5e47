"""Names, keys and ids: what they may look like, and how an id is made."""

import random
import re
import string
import threading
import time
from collections.abc import Collection

NAME_MAX_LENGTH = 255
TENANT_MAX_LENGTH = 64
TASK_ID_MAX_LENGTH = 64
DEFAULT_TENANT = "default"

_ALPHABET = re.compile(r"[A-Za-z0-9._:-]+", re.ASCII)
_LETTERS = f"{string.ascii_letters}{string.digits}._:-".encode()
_STEPS = frozenset({".", ".."})


def is_name(text: str, max_length: int = NAME_MAX_LENGTH) -> bool:
    """Whether the text can name a queue, topic, type, tenant or task: one that also survives in a URL's path."""
    return len(text) <= max_length and _ALPHABET.fullmatch(text) is not None and text not in _STEPS


def are_of_names(texts: Collection[str]) -> bool:
    """Whether each of the texts can be a name, however short or long it is."""
    joined = "".join(texts)
    return joined.isascii() and not joined.encode().translate(None, _LETTERS) and _STEPS.isdisjoint(texts)


class TaskIdSource:
    """Makes UUIDs of version 7: ordered by time, and within a millisecond by the order in which they were made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def __call__(self) -> str:
        with self._lock:
            # 48 bits of milliseconds and 12 bits that count on within one: never the same number twice.
            self._last = max(self._last + 1, (time.time_ns() // 1_000_000) << 12)
            ticks = self._last
        # They need only be different, not unguessable.
        number = 0b10 << 62 | random.getrandbits(62)
        time_digits, digits = f"{ticks >> 12:012x}", f"{number:016x}"
        return f"{time_digits[:8]}-{time_digits[8:]}-7{ticks & 0xFFF:03x}-{digits[:4]}-{digits[4:]}"


new_task_id = TaskIdSource()
