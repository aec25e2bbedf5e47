"""Few names for many."""

from pyspark.sql import SparkSession

from app.pipeline.report.labels import OTHERS, busiest_queues, find_labels, labelled
from tests.pipeline.report.making import attempts, finished, rows_of


def test_the_busiest_keep_their_names(spark: SparkSession) -> None:
    tasks = finished(spark, [{"queue": name} for name in ("a", "a", "b", "c", "c", "d")])
    ended = attempts(spark, [{"queue": name} for name in ("b", "b", "b", "e")])
    labels = find_labels(tasks, ended, top=2)
    assert labels["queue"].kept == ["b", "a"]
    assert (labels["queue"].total, labels["queue"].cut) == (5, 3)
    assert [row["queue"] for row in rows_of(labelled(tasks, labels))] == ["a", "a", "b", OTHERS, OTHERS, OTHERS]


def test_queues_of_one_name_in_two_tenants_are_two(spark: SparkSession) -> None:
    tasks = finished(spark, [{"queue": "q", "tenant_id": tenant} for tenant in ("a", "b", "b")])
    ended = attempts(spark, [{"queue": "q", "tenant_id": tenant} for tenant in ("a", "a", "a", "c")])
    told = [tuple(row.values()) for row in rows_of(busiest_queues(tasks, ended, top=2))]
    assert told == [("a", "q", 1, 3), ("b", "q", 2, 0)]


def test_nothing_is_cut_where_there_are_few(spark: SparkSession) -> None:
    tasks = finished(spark, [{"queue": "a"}, {"queue": "b"}])
    labels = find_labels(tasks, attempts(spark, []))
    assert (labels["queue"].kept, labels["queue"].cut) == (["a", "b"], 0)
    assert [row["queue"] for row in rows_of(labelled(tasks, labels))] == ["a", "b"]
