"""Statements of MySQL, filled in: nothing that a caller sends becomes part of the statement itself."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import text

from app.repository.asyncmy_connection import Arguments, Rows, filled_in, read_instant

HOSTILE = 'it\'s \\ "quoted" -- :name %(name)s %s \n\0 😀'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "NULL"),
        (True, "1"),
        (7, "7"),
        (0.5, "0.5e0"),
        ("plain", "'plain'"),
        (b"\x00\xff'", "_binary'\\0\udcff\\''"),
        (HOSTILE, "'it\\'s \\\\ \\\"quoted\\\" -- :name %(name)s %s \\n\\0 😀'"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "'2026-01-02 03:04:05.000006'"),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "'2026-01-02 01:00:00'"),
    ],
)
def test_values(value: object, written: str) -> None:
    assert filled_in(text("SELECT :value"), {"value": value}) == f"SELECT {written}"


def test_a_list_behind_in_is_one() -> None:
    assert filled_in(text("SELECT a IN :values"), {"values": [1, "b"]}) == "SELECT a IN (1,'b')"


def test_nothing_is_in_an_empty_list() -> None:
    assert filled_in(text("a IN :values"), {"values": []}) == "a IN (SELECT 1 FROM DUAL WHERE false)"


def test_keys_of_tasks_are_a_condition() -> None:
    filled = filled_in(text("WHERE t.seq IN :seqs AND a"), {"seqs": [4, 2, 3]})
    assert filled == "WHERE (t.seq BETWEEN 2 AND 3 OR t.seq IN (4)) AND a"
    assert filled_in(text("WHERE seq IN :seqs"), {"seqs": []}) == "WHERE false"


def test_another_list_is_json() -> None:
    filled = filled_in(text("SELECT :values"), {"values": ["it's", 1]})
    assert filled == "SELECT '[\\\"it\\'s\\\", 1]'"
    assert json.loads(filled.removeprefix("SELECT '").removesuffix("'").replace("\\", "")) == ["it's", 1]


def test_rows_of_values() -> None:
    assert filled_in(text("VALUES :rows"), {"rows": Rows([[1, None], [2, "b"]])}) == "VALUES (1,NULL),(2,'b')"


def test_what_all_rows_have_in_common_stands_in_each() -> None:
    rows = Rows([["same", b"x", None], ["same", b"y", None]])
    assert filled_in(text("VALUES :rows"), {"rows": rows}) == "VALUES ('same',_binary'x',NULL),('same',_binary'y',NULL)"


def test_arguments_of_a_function() -> None:
    filled = filled_in(text("elt(2, :values)"), {"values": Arguments(["a", HOSTILE, 3])})
    assert filled == "elt(2, 'a','it\\'s \\\\ \\\"quoted\\\" -- :name %(name)s %s \\n\\0 😀',3)"


def test_what_looks_like_a_parameter_is_none() -> None:
    filled = filled_in(text("SELECT '12:30', 10 % 3, :value -- a :comment"), {"value": 1})
    assert filled == "SELECT '12:30', 10 % 3, 1 "


def test_instants_are_read_as_utc() -> None:
    assert read_instant("2026-01-02 03:04:05.000006") == datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
