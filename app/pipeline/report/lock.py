"""A lock that is a file: held by one process at a time, given up when it ends, and gone when nobody holds it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits until nobody else is inside."""
    descriptor = _take(path)
    try:
        yield
    finally:
        # While it is held: whoever waits for it sees that the file has gone, and makes a new one.
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _take(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_there(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
