"""A condition that a user writes: SQL over the columns of one table, that reads nothing else and does nothing."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.pipeline.errors import PipelineError
from app.pipeline.messages import SPARK_ERRORS, one_line

SUBQUERIES = ("Subquery", "ListQuery", "Exists")
# They call any method of any Java class.
FORBIDDEN_FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect"})


def where(rows: DataFrame, condition: str) -> DataFrame:
    """The rows for which the condition is true; raises `PipelineError` for one that cannot be asked."""
    try:
        _check(rows, condition)
        chosen = rows.filter(F.expr(condition))
    except SPARK_ERRORS as error:
        raise PipelineError(f"the condition cannot be understood: {one_line(error)}") from error
    # What is chosen must be the same whenever it is computed again.
    if not chosen._jdf.queryExecution().analyzed().condition().deterministic():
        raise PipelineError("the condition must give the same answer each time: no random values in it")
    return chosen


def _check(rows: DataFrame, condition: str) -> None:
    """Looks at the words before anything is looked up."""
    parser = rows.sparkSession._jsparkSession.sessionState().sqlParser()
    for node in _nodes(parser.parseExpression(condition)):
        kind = node.getClass().getSimpleName()
        if kind.endswith(SUBQUERIES):
            raise PipelineError("the condition may not have a subquery: it is about the columns of one table")
        if kind == "UnresolvedFunction" and node.nameParts().last().lower() in FORBIDDEN_FUNCTIONS:
            raise PipelineError(f"the condition may not call {node.nameParts().last()}")


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    children = expression.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))
