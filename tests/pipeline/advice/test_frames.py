"""What Spark makes of the tables, each transform on its own."""

from collections.abc import Sequence

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from app.pipeline.advice.arrivals import asks_for_worker, choose_windows, demands_of, hourly_load, tasks_in_windows
from app.pipeline.advice.delays import count_delays
from app.pipeline.advice.findings import QueueKey, Target
from app.pipeline.advice.flows import LOOK_BACK_SECONDS, count_flows, forecast_each
from app.pipeline.advice.frames import attempt_rows, task_rows
from app.pipeline.advice.rescues import Ending, count_endings
from app.pipeline.advice.runs import run_histogram, summarize_runs
from app.pipeline.advice.workers import plan_each
from tests.pipeline.advice.records import (
    T0,
    Fields,
    at,
    attempt,
    attempts_frame,
    dead,
    dead_frame,
    done,
    history_frame,
    live_frame,
    lost,
    waiting,
)

NOON = T0.timestamp()
MAIL = QueueKey("default", "mail")


def tasks_of(
    spark: SparkSession, history: Sequence[Fields], died: Sequence[Fields] = (), live: Sequence[Fields] = ()
) -> DataFrame:
    return task_rows(history_frame(spark, history), dead_frame(spark, died), live_frame(spark, live))


def by_task(rows: DataFrame, *columns: str) -> dict[str, tuple[object, ...]]:
    return {row.task_id: tuple(row[name] for name in columns) for row in rows.collect()}


def test_tasks_of_all_tables_are_told_in_seconds(spark: SparkSession) -> None:
    rows = tasks_of(
        spark, [done("a", 0.25, 1, 2.5)], [dead("b", 3, 4)], [waiting("c", 5), waiting("d", 6, status="scheduled")]
    )
    assert by_task(rows, "status", "due", "leased", "ended") == {
        "a": ("done", NOON + 0.25, NOON + 1, NOON + 2.5),
        "b": ("dead", NOON + 3, NOON + 3, NOON + 4),
        "c": ("ready", NOON + 5, None, None),
        "d": ("scheduled", NOON + 6, None, None),
    }


def test_a_due_time_that_a_nack_wrote_over_is_taken_from_the_creation(spark: SparkSession) -> None:
    rows = tasks_of(spark, [
        done("kept", 10, 11, 99, attempts=2, created_at=at(0)),
        done("nacked", 10, 11, 99, attempts=2, created_at=at(0), available_at=at(50)),
        done("requeued", 10, 11, 99, attempts=1, created_at=at(0), available_at=at(50)),
    ])  # fmt: skip
    assert by_task(rows, "due") == {"kept": (NOON + 10,), "nacked": (NOON,), "requeued": (NOON + 50,)}


def test_attempts_are_told_by_their_outcome_and_never_run_backwards(spark: SparkSession) -> None:
    rows = attempt_rows(attempts_frame(spark, [
        attempt("success", 0, 1.5),
        attempt("failure", 0, 2, success=False, reason="boom"),
        attempt("silent", 0, 2, success=False),
        lost("lost", 0, 30),
        attempt("cut", 0, 3, success=False, reason="cancelled"),
        attempt("skewed", 5, 4),
    ]))  # fmt: skip
    assert by_task(rows, "outcome", "run") == {
        "success": ("success", 1.5),
        "failure": ("failure", 2.0),
        "silent": ("failure", 2.0),
        "lost": ("lost", 30.0),
        "cut": ("cut", 3.0),
        "skewed": ("success", 0.0),
    }


def test_the_summary_of_runs_is_exact_to_the_width_of_a_bin(spark: SparkSession) -> None:
    times = np.round(np.random.default_rng(2).lognormal(0, 1.5, 4_000), 6)
    rows = [attempt(str(number), 0, time) for number, time in enumerate(times.tolist())]
    other = [attempt("other", 0, 1, queue="other"), attempt("tenant", 0, 9, tenant_id="acme")]
    attempts = attempt_rows(attempts_frame(spark, rows + other))
    runs = summarize_runs(run_histogram(tasks_of(spark, []), attempts))
    assert set(runs) == {MAIL, QueueKey("default", "other"), QueueKey("acme", "mail")}
    for share, value in ((0.5, runs[MAIL].median), (0.99, runs[MAIL].tail)):
        exact = float(np.quantile(times, share, method="inverted_cdf"))
        assert exact - 1e-6 <= value <= exact * 1.021
    assert runs[MAIL].longest == pytest.approx(times.max(), abs=1e-6)
    assert (runs[MAIL].ended, runs[MAIL].successes_logged, runs[MAIL].tail_is_known) == (4_000, 4_000, True)
    assert runs[QueueKey("acme", "mail")].longest == 9.0


def test_runs_that_are_not_logged_are_read_off_tasks_done_at_once(spark: SparkSession) -> None:
    tasks = tasks_of(spark, [
        *(done(f"plain{number}", 0, 1, 3) for number in range(10)),
        done("skewed", 0, 5, 4),
        done("retried", 0, 1, 900, attempts=2),
        done("requeued", 0, 1, 900, available_at=at(800)),
        done("expired", 0, 1, 900, status="expired"),
    ])  # fmt: skip
    failures = attempt_rows(attempts_frame(spark, [attempt("x", 0, 7, success=False), lost("y", 0, 30)]))
    summary = summarize_runs(run_histogram(tasks, failures))[MAIL]
    assert (summary.ended, summary.lost, summary.longest, summary.median) == (12, 1, 7.0, 2.0)
    assert (summary.successes_logged, summary.failures_logged, summary.lost_after) == (0, 2, 30.0)


def test_endings_are_counted_and_dead_letters_older_than_the_history_are_not(spark: SparkSession) -> None:
    tasks = tasks_of(
        spark,
        [done("a", 0, 1, 100), done("b", 0, 1, 200, attempts=2), done("never", 0, 1, 50, attempts=0, status="expired")],
        [dead("old", 0, 99), dead("new", 0, 101, attempts=3), dead("only", 0, 5, queue="broken", attempts=4000)],
        [waiting("c", 0), waiting("d", 0, attempts=2, status="leased")],
    )
    endings = count_endings(tasks)
    assert sorted(endings[MAIL], key=lambda ending: (ending.status, ending.attempts)) == [
        Ending("dead", 3, 1), Ending("done", 1, 1), Ending("done", 2, 1), Ending("leased", 2, 1),
    ]  # fmt: skip
    assert endings[QueueKey("default", "broken")] == [Ending("dead", 100, 1)]


def test_delays_are_those_between_a_failure_and_the_second_attempt(spark: SparkSession) -> None:
    def retried(task_id: str, delay: float, *, success: bool, **fields: object) -> list[Fields]:
        return [
            attempt(task_id, 0, 1, success=False) | fields,
            attempt(task_id, 1 + delay, 9 + delay, attempt_no=2, success=success) | fields,
            attempt(task_id, 99 + delay, 100 + delay, attempt_no=3) | fields,
        ]

    rows = [
        *retried("a", 0.3, success=False),
        *retried("b", 5, success=True),
        *retried("c", 7.9, success=False),
        *retried("d", 8, success=True),
        *retried("e", 5, success=True, queue="other"),
        # Whose first attempt is not known to be the one before; whose lease was lost; who did it at once.
        *retried("twice", 5, success=True),
        *retried("twice", 6, success=True),
        lost("lost", 0, 1),
        attempt("lost", 1, 2, attempt_no=2),
        attempt("once", 0, 1),
    ]
    delays = count_delays(attempt_rows(attempts_frame(spark, rows)))
    assert [(delay.from_seconds, delay.attempts, delay.succeeded) for delay in delays[MAIL]] == [
        (0.0, 1, 0), (4.0, 2, 1), (8.0, 1, 1),
    ]  # fmt: skip
    assert [delay.attempts for delay in delays[QueueKey("default", "other")]] == [1]


def test_who_asks_for_a_worker(spark: SparkSession) -> None:
    tasks = tasks_of(
        spark,
        [done("done", 0, 1, 2), done("expired", 0, 1, 2, first_leased_at=None, status="expired")],
        [dead("dead", 0, 1)],
        [waiting("ready", 5), waiting("due", 5, status="scheduled"), waiting("later", 500, status="scheduled")],
    )
    asking = tasks.where(asks_for_worker(NOON + 100))
    assert set(by_task(asking)) == {"done", "dead", "ready", "due"}


def test_the_busiest_stretch_is_taken_and_no_more_than_allowed(spark: SparkSession) -> None:
    history = [done(f"quiet{number}", number * 3600, 1, 2) for number in range(5)]
    history += [done(f"rush{number:02}", 3 * 3600 + 1 + number, 1, 2) for number in range(20)]
    history += [done("other", 0, 1, 2, queue="other")]
    tasks = tasks_of(spark, history)

    def chosen(most: int) -> list[str]:
        windows = choose_windows(hourly_load(tasks), most)
        rows = tasks_in_windows(tasks, windows, most).where("queue = 'mail'").orderBy("due").collect()
        assert {row.all_tasks for row in rows} == {25}
        return [row.task_id for row in rows]

    rush = [f"rush{number:02}" for number in range(20)]
    assert chosen(23) == ["quiet1", "quiet2", "quiet3", *rush]
    # Of an hour that is too much by itself, its beginning.
    assert chosen(7) == ["quiet3", *rush[:6]]
    retried = tasks.withColumn("attempts", F.lit(3))
    begun = tasks_in_windows(retried, choose_windows(hourly_load(retried), 7), 7).where("queue = 'mail'")
    assert set(by_task(begun)) == {"quiet3", "rush00"}


def demands(spark: SparkSession, tasks: DataFrame, attempts: list[Fields]) -> list[tuple[object, ...]]:
    rows = demands_of(tasks, attempt_rows(attempts_frame(spark, attempts))).collect()
    return sorted((row.asked - NOON, row.run, row.first) for row in rows)


def test_what_the_log_holds_asks_as_it_was_seen(spark: SparkSession) -> None:
    tasks = tasks_of(
        spark, [done("a", 0, 4, 5), done("b", 1, 5, 99, attempts=2, available_at=at(60), created_at=at(1))]
    )
    attempts = [
        attempt("a", 4, 5),
        attempt("b", 5, 8, success=False),
        attempt("b", 70, 99, attempt_no=2),
        attempt("nobody", 0, 1),
    ]
    assert demands(spark, tasks, attempts) == [(0.0, 1.0, True), (1.0, 3.0, True), (70.0, 29.0, False)]


def test_an_id_used_again_has_its_own_attempts(spark: SparkSession) -> None:
    tasks = tasks_of(spark, [done("a", 0, 1, 2), done("a", 100, 101, 105)])
    assert demands(spark, tasks, [attempt("a", 1, 2), attempt("a", 101, 105)]) == [
        (0.0, 1.0, True), (100.0, 4.0, True),
    ]  # fmt: skip


def test_successes_that_are_not_logged_ask_too(spark: SparkSession) -> None:
    tasks = tasks_of(
        spark,
        [done("plain", 0, 4, 6), done("retried", 1, 5, 99, attempts=2, available_at=at(60), created_at=at(1))],
        [dead("dead", 2, 3)],
        [waiting("waits", 7), waiting("runs", 8, status="leased", first_leased_at=at(9), attempts=1)],
    )
    failures = [attempt("retried", 5, 8, success=False), attempt("dead", 2, 3, success=False)]
    rows = demands_of(tasks, attempt_rows(attempts_frame(spark, failures))).collect()
    assert sorted(((row.asked - NOON, row.run, row.first) for row in rows), key=lambda row: row[0]) == [
        (0.0, 2.0, True), (1.0, 3.0, True), (2.0, 1.0, True), (7.0, None, True), (8.0, None, True), (60.0, None, False),
    ]  # fmt: skip


def test_each_queue_is_planned_by_itself(spark: SparkSession) -> None:
    history = [done(f"m{number}", number, number, number + 4) for number in range(60)]
    history += [done(f"o{number}", number, number, number + 0.1, queue="other") for number in range(60)]
    history += [done("x", 0, 1, 2, queue="unknown", attempts=2)]
    plans = plan_each(demands_of(tasks_of(spark, history), attempt_rows(attempts_frame(spark, []))), Target(1.0, 0.9))
    assert (plans[MAIL].held_by, plans[MAIL].tasks) == (4, 60)
    assert [point.workers for point in plans[MAIL].curve] == [2, 3, 4, 5, 6]
    assert plans[QueueKey("default", "other")].held_by == 1
    assert plans[QueueKey("default", "unknown")].curve == ()


def test_flows_are_counted_back_from_now(spark: SparkSession) -> None:
    now = NOON + 1000
    tasks = tasks_of(
        spark,
        [
            done("a", 0, 1, 990),
            done("b", 950, 1, 960, status="expired"),
            done("old", -LOOK_BACK_SECONDS, 1, 1000 - LOOK_BACK_SECONDS),
        ],
        [dead("c", 400, 500)],
        [
            waiting("d", 999),
            waiting("e", 2000, status="scheduled"),
            waiting("f", 10, status="leased"),
            waiting("g", 1500, status="leased"),
        ],
    )
    flows = count_flows(tasks, now)
    assert {row.span: (row.came, row.left) for row in flows.collect()} == {
        -2: (1, 0), -1: (3, 0), 0: (2, 2), 1: (0, 1), 2: (1, 0), 3: (2, 0),
    }  # fmt: skip
    flow = forecast_each(flows)[MAIL]
    assert (flow.backlog, flow.later, flow.spans) == (3, 1, 4)
    assert flow.arrivals == pytest.approx(5 / 1200)
