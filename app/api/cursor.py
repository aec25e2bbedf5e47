"""Cursors: where a page ended, opaque to the caller."""

import base64
import binascii
from datetime import UTC
from typing import TypeVar, cast

import msgspec

from app.api.fields import EARLIEST
from app.domain.commands import AttemptKey, FinishedKey, LiveKey
from app.domain.errors import InvalidRequest
from app.domain.identifiers import is_name
from app.domain.topology import NameKey

MAX_SEQ = 2**63 - 1

Key = TypeVar("Key", LiveKey, FinishedKey, AttemptKey, NameKey)


def encode_cursor(key: LiveKey | FinishedKey | AttemptKey | NameKey | None, of: str) -> str | None:
    """The cursor for a key; `of` names the list, so that no other one takes it."""
    if key is None:
        return None
    return base64.urlsafe_b64encode(msgspec.json.encode((of, key))).decode().rstrip("=")


def decode_cursor(cursor: str | None, kind: type[Key], of: str) -> Key | None:
    """The key that a cursor of this list holds; raises `InvalidRequest` for anything else."""
    if not cursor:
        return None
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        listed, key = msgspec.json.decode(data, type=tuple[str, kind])  # type: ignore[valid-type]
        sound = listed == of and _is_sound(key)
    except (binascii.Error, ValueError, OverflowError, msgspec.DecodeError) as error:
        raise _bad_cursor() from error
    if not sound:
        raise _bad_cursor()
    return cast(Key, key)


def _is_sound(key: LiveKey | FinishedKey | AttemptKey | NameKey) -> bool:
    if isinstance(key, NameKey):
        return is_name(key.name)
    if isinstance(key, LiveKey):
        return 0 <= key.seq <= MAX_SEQ
    instant = key.finished_at if isinstance(key, FinishedKey) else key.started_at
    return 0 <= key.id <= MAX_SEQ and instant.tzinfo is not None and instant.astimezone(UTC) >= EARLIEST


def _bad_cursor() -> InvalidRequest:
    return InvalidRequest("cursor is not one that this list gave out", location=("query", "cursor"))
