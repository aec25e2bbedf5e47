"""A condition reads the columns of one table, and does nothing else."""

import pytest
from pyspark.sql import SparkSession

from app.pipeline.condition import where
from app.pipeline.errors import PipelineError


def test_rows_are_chosen(spark: SparkSession) -> None:
    rows = spark.range(10).selectExpr("id", "concat('q', id % 2) queue")
    chosen = where(rows, "queue = 'q1' AND id >= 3 AND id NOT IN (5, 6)")
    assert [row.id for row in chosen.collect()] == [3, 7, 9]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("queue = ", "cannot be understood: Syntax error"),
        ("", "cannot be understood: Syntax error"),
        ("id = 1; DROP TABLE x", "cannot be understood: Syntax error at or near ';'"),
        ("nope = 1", "cannot be understood: A column.*`nope`"),
        ("id", "cannot be understood: .*is not a boolean"),
        ("nothing_like_it(id) = 1", "cannot be understood: .*nothing_like_it"),
        ("count(*) > 1", "cannot be understood"),
        ("id IN (SELECT id FROM range(3))", "may not have a subquery"),
        ("EXISTS (SELECT * FROM parquet.`/etc`)", "may not have a subquery"),
        ("id = 1 OR id = (SELECT 1)", "may not have a subquery"),
        ("reflect('java.lang.System', 'getenv', 'HOME') = id", "may not call reflect"),
        ("abs(length(JAVA_METHOD('java.util.UUID', 'randomUUID'))) = 1", "may not call JAVA_METHOD"),
        ("rand() < 0.5", "must give the same answer each time"),
    ],
)
def test_a_bad_condition_is_told_in_a_line(spark: SparkSession, condition: str, told: str) -> None:
    with pytest.raises(PipelineError, match=told) as refusal:
        where(spark.range(3), condition)
    assert "\n" not in str(refusal.value)
