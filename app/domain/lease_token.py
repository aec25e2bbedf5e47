"""Lease tokens: given to the worker once, kept by the database only as a hash."""

import hashlib
import os
from base64 import urlsafe_b64encode

TOKEN_BYTES = 24
TOKENS_AT_ONCE = 256


class LeaseTokenSource:
    """Makes unguessable tokens of 192 random bits, fetched from the system for many at once."""

    def __init__(self) -> None:
        self._tokens: list[str] = []
        # Two processes must not give out the same tokens.
        os.register_at_fork(after_in_child=self._tokens.clear)

    def __call__(self) -> str:
        if not self._tokens:
            bits = os.urandom(TOKEN_BYTES * TOKENS_AT_ONCE)
            starts = range(0, len(bits), TOKEN_BYTES)
            self._tokens += [urlsafe_b64encode(bits[start : start + TOKEN_BYTES]).decode() for start in starts]
        return self._tokens.pop()


new_lease_token = LeaseTokenSource()


def lease_token_hash(token: str) -> str:
    """What the database keeps of a token: half a SHA-256 is plenty against guessing, and short in every row."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32]
