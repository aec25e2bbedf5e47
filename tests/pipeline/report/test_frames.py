"""What every figure is made from."""

from pyspark.sql import SparkSession

from app.pipeline.report.frames import Period, united, within
from tests.pipeline.report.making import T0, after, attempts, dead_letters, finished, history, rows_of


def test_a_row_that_is_archived_and_live_counts_once(spark: SparkSession) -> None:
    lake = history(spark, [{"id": 1, "finished_at": T0}, {"id": 2, "finished_at": T0}])
    live = history(spark, [{"id": 2, "finished_at": T0}, {"id": 2, "finished_at": after(1)}, {"id": 3}])
    both = united(lake, live, "finished_at")
    assert sorted((row["id"], row["finished_at"]) for row in rows_of(both)) == [
        (1, T0), (2, T0), (2, after(1)), (3, T0),
    ]  # fmt: skip
    assert both.columns == lake.columns


def test_dead_letters_are_told_apart_by_when_they_failed(spark: SparkSession) -> None:
    lake = dead_letters(spark, [{"id": 1, "failed_at": T0}])
    both = united(
        lake, dead_letters(spark, [{"id": 1, "failed_at": after(5)}, {"id": 1, "failed_at": T0}]), "failed_at"
    )
    assert both.count() == 2


def test_a_lake_alone_stays_as_it_is(spark: SparkSession) -> None:
    lake = history(spark, [{}])
    assert united(lake, None, "finished_at") is lake


def test_dead_letters_are_finished_tasks(spark: SparkSession) -> None:
    found = finished(
        spark,
        done=[{"task_id": "a", "status": "expired", "payload": b"12345", "finished_at": after(1)}],
        dead=[{"task_id": "b", "reason": "boom", "failed_at": after(2), "tenant_id": "acme"}],
    )
    told = [(r["task_id"], r["status"], r["payload_bytes"], r["finished_at"], r["reason"]) for r in rows_of(found)]
    assert told == [("a", "expired", 5, after(1), None), ("b", "dead", 2, after(2), "boom")]
    assert [row["tenant"] for row in rows_of(found)] == ["x", "acme"]


def test_only_a_failed_attempt_whose_lease_expired_is_lost(spark: SparkSession) -> None:
    found = attempts(
        spark,
        [
            {"success": False, "reason": "lease expired", "finished_at": after(30)},
            {"success": False, "reason": "no lease expired here", "finished_at": after(0.25)},
            {"success": False, "reason": None},
            {"success": True, "reason": None, "finished_at": after(0.000001)},
        ],
    )
    assert [(row["lost"], row["seconds"]) for row in rows_of(found)] == [
        (True, 30.0), (False, 0.25), (False, 0.0), (False, 0.000001),
    ]  # fmt: skip


def test_a_period_has_its_start_and_not_its_end(spark: SparkSession) -> None:
    found = finished(spark, [{"id": n, "task_id": str(n), "finished_at": after(n)} for n in range(4)])
    assert [row["task_id"] for row in rows_of(within(found, Period(after(1), after(3)), "finished_at"))] == ["1", "2"]
    assert within(found, Period(), "finished_at").count() == 4
