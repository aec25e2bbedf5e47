"""Leases that are to be given, as PostgreSQL's statements take them."""

from app.domain.lease_token import lease_token_hash
from app.repository.grants import grant_parameters


def test_a_run_of_one_worker_is_said_once() -> None:
    parameters = grant_parameters(["ada", "ada", "", "bob", "bob", "bob", "ada"], list("abcdefg"))
    assert parameters["worker_ids"] == ["ada", "", "bob", "ada"]
    assert parameters["begins"] == [1, 3, 4, 7]


def test_every_token_has_its_hash_in_order() -> None:
    parameters = grant_parameters(["ada", "bob"], ["first", "second"])
    assert parameters["token_hashes"] == f"{lease_token_hash('first')} {lease_token_hash('second')}"
