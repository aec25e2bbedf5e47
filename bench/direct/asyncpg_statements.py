"""The repository's named statements as asyncpg takes them: `$1` in place of `:name`."""

import re
from collections.abc import Mapping
from typing import Any

import asyncpg

from app.repository.statements import read_statements

_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")


class Statement:
    """The text of a statement with numbered parameters, and their names in that order."""

    def __init__(self, sql: str) -> None:
        self._names: list[str] = []
        self.sql = _PARAMETER.sub(self._number, _COMMENT.sub("", sql))

    async def rows(self, connection: asyncpg.Connection, **parameters: object) -> list[Mapping[str, Any]]:
        """Run the statement; asyncpg keeps it prepared."""
        rows: list[Mapping[str, Any]] = await connection.fetch(self.sql, *(parameters[name] for name in self._names))
        return rows

    def _number(self, match: re.Match[str]) -> str:
        if match[1] not in self._names:
            self._names.append(match[1])
        return f"${self._names.index(match[1]) + 1}"


def load_asyncpg_statements() -> dict[str, Statement]:
    """All statements of PostgreSQL by name."""
    return {name: Statement(sql) for name, sql in read_statements("postgresql").items()}
