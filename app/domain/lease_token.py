"""Lease tokens: given to the worker once, kept by the database only as a hash."""

import hashlib
import secrets


def new_lease_token() -> str:
    """An unguessable token of 192 random bits."""
    return secrets.token_urlsafe(24)


def lease_token_hash(token: str) -> str:
    """What the database keeps of a token: half a SHA-256 is plenty against guessing, and short in every row."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32]
