"""From Spark's filters to comparisons."""

from collections.abc import Sequence

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from app.pipeline.source.comparisons import Comparison, NotExpressible, Operator, in_column
from app.pipeline.tables import Column

OPERATORS: dict[type[Filter], Operator] = {
    EqualTo: Operator.EQUAL,
    EqualNullSafe: Operator.EQUAL,
    LessThan: Operator.LESS,
    LessThanOrEqual: Operator.LESS_OR_EQUAL,
    GreaterThan: Operator.GREATER,
    GreaterThanOrEqual: Operator.GREATER_OR_EQUAL,
    In: Operator.IN,
    IsNull: Operator.IS_NULL,
    IsNotNull: Operator.IS_NOT_NULL,
}
MAX_VALUES = 1000


def to_comparison(condition: Filter, columns: Sequence[Column]) -> Comparison:
    """The same condition for a database. Raises `NotExpressible` for one that Spark must decide itself."""
    operator = OPERATORS.get(type(condition))
    if operator is None or len(condition.attribute) != 1:  # type: ignore[attr-defined]
        raise NotExpressible(type(condition).__name__)
    column = in_column(columns, condition.attribute[0])  # type: ignore[attr-defined]
    if operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        return Comparison(column, operator)
    return _with_values(column, operator, condition)


def _with_values(column: Column, operator: Operator, condition: Filter) -> Comparison:
    value = condition.value  # type: ignore[attr-defined]
    if operator is not Operator.IN:
        if value is None and isinstance(condition, EqualNullSafe):
            return Comparison(column, Operator.IS_NULL)
        return Comparison(column, operator, (value,))
    # NULL is in no list.
    values = tuple(item for item in value if item is not None)
    if not 0 < len(values) <= MAX_VALUES:
        raise NotExpressible(f"a list of {len(values)}")
    return Comparison(column, operator, values)
