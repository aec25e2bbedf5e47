"""Time in buckets."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from app.pipeline.report.buckets import DAY, HOUR, Span, bucket, find_span
from tests.pipeline.report.making import T0, after, attempts, finished, rows_of


@pytest.mark.parametrize(
    ("duration", "width"),
    [
        (timedelta(0), HOUR),
        (timedelta(days=9), HOUR),
        (timedelta(days=14), 2 * HOUR),
        (timedelta(days=59), 6 * HOUR),
        (timedelta(days=365), 2 * DAY),
        (timedelta(days=365 * 30), 56 * DAY),
    ],
)
def test_buckets_are_as_fine_as_a_page_can_show(duration: timedelta, width: int) -> None:
    span = Span.of(T0, T0 + duration)
    assert span.width_seconds == width
    assert len(span.starts) <= 240


def test_every_bucket_is_there_also_the_empty_ones() -> None:
    span = Span.of(datetime(2026, 1, 1, 9, 59, tzinfo=UTC), datetime(2026, 1, 1, 12, 0, tzinfo=UTC))
    assert [start.hour for start in span.starts] == [9, 10, 11, 12]


def test_an_instant_falls_into_the_bucket_that_starts_before_it(spark: SparkSession) -> None:
    instants = [after(-0.000001), T0, after(3599.999999), after(3600)]
    found = finished(spark, [{"finished_at": instant} for instant in instants])
    starts = [row["at"] for row in rows_of(found.select(bucket("finished_at", HOUR).alias("at")))]
    assert starts == [after(-3600), T0, T0, after(3600)]
    assert set(starts) <= set(Span.of(instants[0], instants[-1]).starts)


def test_the_span_is_from_the_first_end_to_the_last(spark: SparkSession) -> None:
    tasks = finished(spark, [{"finished_at": after(5.000001)}, {"finished_at": after(2)}])
    found = find_span(tasks, attempts(spark, [{"finished_at": after(1)}]))
    assert found is not None
    assert (found.first, found.last) == (after(1), after(5.000001))


def test_nothing_has_no_span(spark: SparkSession) -> None:
    assert find_span(finished(spark, []), attempts(spark, [])) is None
