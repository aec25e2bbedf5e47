"""Named SQL statements, read from the `.sql` file that stands next to each adapter.

A file holds `-- name: …` and `-- part: …` blocks. A part is a piece of text that several statements share, which name
it as `{part}`. A line that ends in `-- if … is given` is left out where that parameter is NULL, so that a filter that
nobody asked for does not stand in an index's way. What stands between `-- each lane` and `-- end of lane` is repeated
for every lane, by UNION ALL.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from sqlalchemy import TextClause, bindparam, text

_HEADER = re.compile(r"^-- (name|part): (\w+)\n", re.MULTILINE)
_EXPANDING = re.compile(r"\bIN :(\w+)")
_OPTIONAL = re.compile(r"^.* -- if (\w+) is given(?:\n|$)", re.MULTILINE)
_LANE = re.compile(r"-- each lane[^\n]*\n(.*?)-- end of lane\n", re.DOTALL)
_OF_LANE = re.compile(r":(queue_id|type|place|room)\b")


def load_statements(dialect: str, package: str = __package__) -> Mapping[str, TextClause]:
    """All statements of a dialect by name, from the files of a package."""
    return {name: _prepare(sql) for name, sql in read_statements(dialect, package).items()}


def read_statements(dialect: str, package: str = __package__) -> Mapping[str, str]:
    """The text of all statements of a dialect by name, in the order of the file."""
    blocks = _HEADER.split(files(package).joinpath(f"{dialect}.sql").read_text("utf-8"))[1:]
    parts: dict[str, str] = {}
    statements: dict[str, str] = {}
    for kind, name, sql in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        whole = re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], sql.strip())
        (statements if kind == "name" else parts)[name] = whole
    return statements


def optional_parameters(statement: TextClause) -> frozenset[str]:
    """The parameters whose lines are left out where they are NULL."""
    return frozenset(_OPTIONAL.findall(statement.text))


@cache
def leave_out(statement: TextClause, absent: frozenset[str]) -> TextClause:
    """A statement without the lines of these parameters."""
    return _prepare(_OPTIONAL.sub(lambda line: "" if line[1] in absent else line[0], statement.text))


@cache
def repeat_for_lanes(statement: TextClause, lanes: int) -> TextClause:
    """A statement for so many lanes: the parameters of each lane are named with its number behind."""

    def repeated(match: re.Match[str]) -> str:
        return "UNION ALL".join(_OF_LANE.sub(rf":\1_{lane}", match[1]) for lane in range(lanes))

    return _prepare(_LANE.sub(repeated, statement.text))


def _prepare(sql: str) -> TextClause:
    """`IN :list` takes a list of any length."""
    return text(sql).bindparams(*(bindparam(name, expanding=True) for name in set(_EXPANDING.findall(sql))))
