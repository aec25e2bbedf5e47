"""The named statements: the same ones in the same order for every dialect, but for what a dialect forces."""

import re
from pathlib import Path

import pytest

from app.repository import statements
from app.repository.statements import leave_out, load_statements, optional_parameters, read_statements

DIALECTS = ("postgresql", "mysql", "sqlite")

# Claiming is one statement in PostgreSQL; the others choose, lock and lease in steps. Only it remembers starts.
# What a move is about travels as JSON, which MySQL reads slowly: what is done most often goes without.
FORCED = {
    "claim_queue", "claim_lanes", "pick_queue", "rank_lanes", "lock_ranked", "lease_many", "read_leased",
    "read_contents", "enqueue_at_once", "claim_at_once", "ack_at_once", "ack_and_log_at_once", "count_returns",
    "lock_held", "archive_acked", "log_acked",
}  # fmt: skip
# A batch is one value only where there are arrays of bytes; lanes are one only where a lateral join finds their index.
# What is overdue is looked for from a start only where starts are remembered.
OWN_PARAMETERS = {"insert_tasks", "next_available", "probe_overdue"}


def shared(dialect: str) -> list[str]:
    return [name for name in read_statements(dialect) if name not in FORCED]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_are_the_same_in_the_same_order(dialect: str) -> None:
    assert shared(dialect) == shared("postgresql")


def test_only_named_statements_differ_between_the_dialects() -> None:
    own = {dialect: set(read_statements(dialect)) & FORCED for dialect in DIALECTS}
    assert own["postgresql"] == {
        "claim_queue", "claim_lanes", "enqueue_at_once", "claim_at_once", "ack_at_once", "ack_and_log_at_once",
        "count_returns",
    }  # fmt: skip
    assert own["mysql"] == {
        "pick_queue", "rank_lanes", "lock_ranked", "lease_many", "read_contents", "lock_held", "archive_acked",
        "log_acked",
    }  # fmt: skip
    assert own["sqlite"] == {"pick_queue", "rank_lanes", "lease_many", "read_leased"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_parameters_are_the_same(dialect: str) -> None:
    own, reference = load_statements(dialect), load_statements("postgresql")
    for name in set(shared(dialect)) - OWN_PARAMETERS:
        assert set(own[name].compile().params) == set(reference[name].compile().params), name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_part_is_put_in_its_place(dialect: str) -> None:
    for name, sql in read_statements(dialect).items():
        assert re.findall(r"\{\w+\}", sql) == [], name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_statement_is_empty_or_named_twice(dialect: str) -> None:
    names = re.findall(r"^-- name: (\w+)$", source(dialect), re.MULTILINE)
    assert names == list(read_statements(dialect))
    assert all(
        re.search(r"^(SELECT|INSERT|UPDATE|DELETE|WITH)\b", sql, re.MULTILINE)
        for sql in read_statements(dialect).values()
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_line_that_may_be_left_out_is_about_its_own_parameter(dialect: str) -> None:
    for name, sql in read_statements(dialect).items():
        for line in sql.splitlines():
            if match := re.search(r" -- if (\w+)", line):
                assert line.endswith(f" -- if {match[1]} is given"), name
                assert f":{match[1]}" in line, name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_part_is_used(dialect: str) -> None:
    parts = re.findall(r"^-- part: (\w+)$", source(dialect), re.MULTILINE)
    assert [part for part in parts if f"{{{part}}}" not in source(dialect)] == []


def source(dialect: str) -> str:
    return Path(statements.__file__).with_name(f"{dialect}.sql").read_text("utf-8")


class TestLoader:
    """Files of the test's own, read in place of the dialects'."""

    @pytest.fixture(autouse=True)
    def directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(statements, "files", lambda package: tmp_path)
        return tmp_path

    def test_parts_are_put_in_their_place(self, directory: Path) -> None:
        (directory / "toy.sql").write_text(
            "-- A toy.\n\n-- part: columns\na, b\n\n-- part: more\n{columns}, c\n\n-- name: n\nSELECT {more}\nFROM t\n"
        )
        assert read_statements("toy") == {"n": "SELECT a, b, c\nFROM t"}

    def test_empty_braces_are_left_alone(self, directory: Path) -> None:
        (directory / "toy.sql").write_text("-- name: look\nSELECT '{}'\n")
        assert read_statements("toy") == {"look": "SELECT '{}'"}

    def test_list_may_have_any_length(self, directory: Path) -> None:
        (directory / "toy.sql").write_text("-- name: look\nSELECT 1 WHERE 1 IN :numbers\n")
        statement = load_statements("toy")["look"].bindparams(numbers=[1, 2, 3])
        compiled = statement.compile(compile_kwargs={"render_postcompile": True})
        assert str(compiled).endswith("IN (:numbers_1, :numbers_2, :numbers_3)")

    def test_lines_of_what_is_not_given_are_left_out(self, directory: Path) -> None:
        (directory / "toy.sql").write_text(
            "-- name: look\nSELECT 1\nWHERE a = :a\n    AND b IN :b -- if b is given\n    AND c = :c -- if c is given\n"
        )
        statement = load_statements("toy")["look"]
        assert optional_parameters(statement) == {"b", "c"}
        assert leave_out(statement, frozenset({"b", "c"})).text == "SELECT 1\nWHERE a = :a\n"
        assert leave_out(statement, frozenset({"b"})).text.endswith("a = :a\n    AND c = :c -- if c is given")
        assert set(leave_out(statement, frozenset({"c"})).compile().params) == {"a", "b"}

    def test_unknown_part_is_an_error(self, directory: Path) -> None:
        (directory / "toy.sql").write_text("-- name: look\nSELECT {columns}\n")
        with pytest.raises(KeyError, match="columns"):
            read_statements("toy")

    def test_unknown_dialect_is_an_error(self, directory: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"toy\.sql"):
            read_statements("toy")
