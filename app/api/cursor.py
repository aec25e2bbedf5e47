"""Cursors: where a page ended, opaque to the caller."""

import base64
import binascii
from typing import TypeVar

import msgspec

from app.api.fields import EARLIEST
from app.domain.commands import AttemptKey, FinishedKey, LiveKey
from app.domain.errors import InvalidRequest
from app.domain.identifiers import is_name
from app.domain.topology import NameKey

MAX_SEQ = 2**63 - 1

Key = TypeVar("Key", LiveKey, FinishedKey, AttemptKey, NameKey)


def encode_cursor(key: LiveKey | FinishedKey | AttemptKey | NameKey | None) -> str | None:
    if key is None:
        return None
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def decode_cursor(cursor: str | None, kind: type[Key]) -> Key | None:
    """The key that a cursor of this list holds; raises `InvalidRequest` for anything else."""
    if not cursor:
        return None
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        key = msgspec.json.decode(data, type=kind)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise _bad_cursor() from error
    if not _is_sound(key):
        raise _bad_cursor()
    return key


def _is_sound(key: LiveKey | FinishedKey | AttemptKey | NameKey) -> bool:
    if isinstance(key, NameKey):
        return is_name(key.name)
    if isinstance(key, LiveKey):
        return 0 <= key.seq <= MAX_SEQ
    instant = key.finished_at if isinstance(key, FinishedKey) else key.started_at
    return 0 <= key.id <= MAX_SEQ and instant.tzinfo is not None and instant >= EARLIEST


def _bad_cursor() -> InvalidRequest:
    return InvalidRequest("cursor is not one that this list gave out", location=("query", "cursor"))
