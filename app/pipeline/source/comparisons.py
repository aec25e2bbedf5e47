"""Conditions on rows that a database may decide for Spark: a column, an operator, values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from app.pipeline.tables import Column, Kind

Value = str | bytes | int | float | bool | datetime


class Operator(Enum):
    """What is asked about a column; a column that is NULL answers none of them but `IS_NULL`."""

    EQUAL = "="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "IN"
    IS_NULL = "IS NULL"
    IS_NOT_NULL = "IS NOT NULL"


class NotExpressible(Exception):
    """No database decides this condition as Spark does."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition; none of its values is NULL."""

    column: Column
    operator: Operator
    values: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        for value in self.values:
            if not FITS[self.column.kind](value):
                raise NotExpressible(f"{self.column.name} is never compared with {type(value).__name__}")


# Writes a value into a statement: as a literal, or as the mark of a bound parameter.
Put = Callable[[Kind, Value], str]


def render(comparison: Comparison, column: str, put: Put) -> str:
    """The condition as SQL, on a column as the dialect must write it for this comparison."""
    operator = comparison.operator
    if operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        return f"{column} {operator.value}"
    values = [put(comparison.column.kind, value) for value in comparison.values]
    if operator is Operator.IN:
        return f"{column} IN ({', '.join(values)})"
    return f"{column} {operator.value} {values[0]}"


def utc(value: datetime) -> datetime:
    """The same instant, without its zone; one without a zone is UTC already."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _is_text(value: Value) -> bool:
    # No database keeps a NUL in text, and half of a surrogate pair is no text at all.
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)


def _is_integer(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


FITS: dict[Kind, Callable[[Value], bool]] = {
    Kind.TEXT: _is_text,
    Kind.BYTES: lambda value: isinstance(value, bytes),
    Kind.INTEGER: _is_integer,
    Kind.LONG: _is_integer,
    Kind.DOUBLE: lambda value: isinstance(value, float) and math.isfinite(value),
    Kind.BOOLEAN: lambda value: isinstance(value, bool),
    # Before the year 1000 the databases do not agree about what a time means.
    Kind.INSTANT: lambda value: isinstance(value, datetime) and value.year >= 1000,
}


def in_column(columns: Sequence[Column], name: str) -> Column:
    """The column of a name. Raises `NotExpressible` if there is none."""
    for column in columns:
        if column.name == name:
            return column
    raise NotExpressible(f"there is no column {name}")
