"""Conditions as an option, which must be text: a JSON list of `[column, operator, value, …]`; all of them must hold."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.pipeline.errors import PipelineError
from app.pipeline.source.comparisons import Comparison, NotExpressible, Operator, Value, in_column
from app.pipeline.tables import Column, Kind, Table

FORM = '[["queue", "=", "mail"], ["finished_at", "<", "2026-01-31T00:00:00Z"], ["result", "IS NULL"]]'


def write_where(comparisons: Sequence[Comparison]) -> str:
    """The option for some conditions."""
    return json.dumps([
        [comparison.column.name, comparison.operator.value, *map(_to_json, comparison.values)]
        for comparison in comparisons
    ])  # fmt: skip


def read_where(text: str, table: Table) -> list[Comparison]:
    """The conditions of an option. Raises `PipelineError` for what is none."""
    try:
        return [_comparison(table, *item) for item in json.loads(text)]
    except (ValueError, TypeError, NotExpressible) as error:
        raise PipelineError(f"the option where cannot be read ({error}); write for example {FORM}") from error


def _comparison(table: Table, name: str, operator: str, *values: Any) -> Comparison:
    column, asked = in_column(table.columns, name), Operator(operator)
    expected = {Operator.IS_NULL: 0, Operator.IS_NOT_NULL: 0, Operator.IN: max(1, len(values))}.get(asked, 1)
    if len(values) != expected:
        raise NotExpressible(f"{operator} takes {expected} values, not {len(values)}")
    return Comparison(column, asked, tuple(_from_json(column, value) for value in values))


def _to_json(value: Value) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value


def _from_json(column: Column, value: Any) -> Value:
    if column.kind is Kind.INSTANT:
        return datetime.fromisoformat(value)
    if column.kind is Kind.DOUBLE and isinstance(value, int):
        return float(value)
    decoded: Value = bytes.fromhex(value) if column.kind is Kind.BYTES else value
    return decoded
