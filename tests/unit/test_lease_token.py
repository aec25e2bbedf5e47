"""Lease tokens: unguessable, and kept only as a hash."""

import re

import pytest

from app.domain.lease_token import lease_token_hash, new_lease_tokens


def test_token_has_at_least_128_bits_in_characters_that_survive_anywhere() -> None:
    [token] = new_lease_tokens(1)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)
    assert len(token) * 6 >= 128


def test_tokens_differ_in_every_place() -> None:
    tokens = new_lease_tokens(1000)
    assert len(set(tokens)) == 1000
    assert all(len(set(characters)) > 20 for characters in zip(*tokens, strict=True))


def test_hash_is_stable() -> None:
    assert lease_token_hash("token") == lease_token_hash("token") == "3c469e9d6c5875d37a43f353d4f88e61"


def test_hash_fits_its_column_and_does_not_tell_the_token() -> None:
    [token] = new_lease_tokens(1)
    assert re.fullmatch(r"[0-9a-f]{32}", lease_token_hash(token))
    assert token not in lease_token_hash(token)


@pytest.mark.parametrize("other", ["Token", "token ", "", "token\0"])
def test_hashes_of_different_tokens_differ(other: str) -> None:
    assert lease_token_hash(other) != lease_token_hash("token")


@pytest.mark.parametrize("odd", ["\ud800", "\U0001f600", "x" * 100_000])
def test_whatever_a_caller_sends_has_a_hash(odd: str) -> None:
    assert len(lease_token_hash(odd)) == 32
