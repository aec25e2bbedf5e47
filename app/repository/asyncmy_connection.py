"""MySQL by asyncmy itself: SQLAlchemy keeps the pool, but between the two it would cost as much as the driver does."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import repeat
from typing import Any, cast

from asyncmy.constants import FIELD_TYPE
from asyncmy.converters import conversions, escape_bytes_prefixed, escape_item, escape_str
from asyncmy.cursors import DictCursor
from sqlalchemy import TextClause

from app.repository.connection import Row
from app.repository.mysql_keys import is_one_of

_COMMENT = re.compile(r"--[^\n]*")
_KEYS = re.compile(r"((?:\w\.)?seq) IN :(\w+)")
_LISTED = re.compile(r"\bIN :(\w+)")
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
# So many letters of statements go together; the server takes 64 MiB at once, if nobody has set it to less.
MOST_HELD_BACK = 1024 * 1024
# What is in no list: an empty one is not MySQL.
_NOTHING = "(SELECT 1 FROM DUAL WHERE false)"

Prepare = Callable[[str, Mapping[str, object]], tuple[TextClause, dict[str, object]]]


@lru_cache(maxsize=64)
def write_instant(instant: datetime) -> str:
    """An instant as MySQL takes it: in UTC, and without saying so. Few are in a statement, though often."""
    return f"'{instant.astimezone(UTC).replace(tzinfo=None)}'"


@lru_cache(maxsize=64)
def read_instant(text: str) -> datetime:
    """Likewise: tasks that came together have the same."""
    return datetime.fromisoformat(f"{text}+00:00")


class Rows(list[Sequence[object]]):
    """What stands behind VALUES."""


class Arguments(list[object]):
    """What a function takes any number of."""


# How the driver writes and reads values.
CONVERSIONS = {
    **conversions,
    datetime: lambda instant, mapping: write_instant(instant),
    FIELD_TYPE.DATETIME: read_instant,
    FIELD_TYPE.TIMESTAMP: read_instant,
}


def _write_other(value: object) -> str:
    return cast(str, escape_item(value, "utf8mb4", CONVERSIONS))


# The driver's own way to the same takes twice as long.
_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: escape_str,
    int: str,
    type(None): lambda nothing: "NULL",
    bytes: escape_bytes_prefixed,
    datetime: write_instant,
}


def literal(value: object) -> str:
    """A value as it stands in a statement."""
    return _WRITERS.get(type(value), _write_other)(value)


def _rows_of_values(rows: "Rows") -> str:
    """Column by column: much of what is said of the tasks of a batch is the same for all of them."""
    columns = [_column(values) for values in zip(*rows, strict=True)]
    return ",".join(f"({','.join(row)})" for row in zip(*columns, strict=True))


def _column(values: Sequence[object]) -> Iterable[str]:
    if values.count(values[0]) == len(values):
        return repeat(literal(values[0]), len(values))
    return map(literal, values)


class Interpolated:
    """A statement as Python fills it in: `%(name)s` instead of `:name`. Lists are such behind IN, and else JSON.

    The keys of tasks are a condition as a whole, with the column that it is about.
    """

    def __init__(self, sql: str) -> None:
        bare = _COMMENT.sub("", sql)
        self._columns = {name: column for column, name in _KEYS.findall(bare)}
        self._listed = frozenset(_LISTED.findall(bare))
        self._text = _PARAMETER.sub(r"%(\1)s", _KEYS.sub(r":\2", bare).replace("%", "%%"))

    def fill_in(self, values: Mapping[str, object]) -> str:
        return self._text % {name: self._fill(name, value) for name, value in values.items()}

    def _fill(self, name: str, value: object) -> str:
        if isinstance(value, Rows):
            return _rows_of_values(value)
        if isinstance(value, Arguments):
            return ",".join(map(literal, value))
        if not isinstance(value, list):
            return literal(value)
        if name not in self._listed:
            return literal(json.dumps(value))
        if name in self._columns:
            return is_one_of(self._columns[name], value) if value else "false"
        return _listed(value) if value else _NOTHING


def filled_in(statement: TextClause, values: Mapping[str, object]) -> str:
    """A statement as the server gets it."""
    return _interpolated(statement).fill_in(values)


@cache
def _interpolated(statement: TextClause) -> Interpolated:
    return Interpolated(statement.text)


def _listed(values: Sequence[object]) -> str:
    return f"({','.join(map(literal, values))})"


class AsyncmyConnection:
    """See `Connection`. What gives no rows is sent with what comes next, at the latest with the commit.

    The server stops at the first statement that fails: what stands behind it, a commit too, is not carried out.
    """

    def __init__(self, driver: Any, prepare: Prepare) -> None:
        self._driver = driver
        self._prepare = prepare
        self._held_back: list[str] = []
        self._ended = False

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        return await self._send(filled_in(*self._prepare(statement, parameters)))

    async def run(self, statement: str, parameters: Mapping[str, object]) -> None:
        self._held_back.append(filled_in(*self._prepare(statement, parameters)))
        if sum(map(len, self._held_back)) > MOST_HELD_BACK:
            await self.flush()

    async def run_each(self, statement: str, records: Sequence[Row]) -> None:
        for record in records:
            await self.run(statement, record)

    async def flush(self) -> None:
        if self._held_back:
            await self._send(self._held_back.pop())

    async def commit(self) -> None:
        await self._send("COMMIT")
        self._ended = True

    async def rollback(self) -> None:
        self._held_back.clear()
        await self._driver.rollback()
        self._ended = True

    async def _send(self, last: str) -> Sequence[Row]:
        """Sends what was held back, and this; gives the rows of this."""
        before, self._held_back = self._held_back, []
        async with self._driver.cursor(DictCursor) as cursor:
            await cursor.execute(";".join([*before, last]))
            for _ in before:
                await cursor.nextset()
            return cast(Sequence[Row], await cursor.fetchall() if cursor.description else ())

    async def roll_back_unless_ended(self) -> None:
        if not self._ended:
            await self.rollback()
