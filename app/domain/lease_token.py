"""Lease tokens: given to the worker once, kept by the database only as a hash."""

import hashlib
import os
from base64 import urlsafe_b64encode

# Three bytes make four letters, so many tokens can be written as one text and cut apart.
TOKEN_BYTES = 24
TOKEN_LENGTH = TOKEN_BYTES * 4 // 3


def new_lease_tokens(count: int) -> list[str]:
    """So many unguessable tokens of 192 random bits."""
    text = urlsafe_b64encode(os.urandom(TOKEN_BYTES * count)).decode()
    return [text[start : start + TOKEN_LENGTH] for start in range(0, len(text), TOKEN_LENGTH)]


def lease_token_hash(token: str) -> str:
    """What the database keeps of a token: half a SHA-256 is plenty against guessing, and short in every row."""
    # Ours are ASCII, which is sooner written; a caller may say anything.
    data = token.encode() if token.isascii() else token.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]
