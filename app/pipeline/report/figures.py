"""All figures of a report, computed by Spark and small enough for one machine, whatever the lake's size."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from app.pipeline.advice.advise import Recorded
from app.pipeline.report.backlog import backlog_by_queue
from app.pipeline.report.buckets import HOUR, Span, find_span
from app.pipeline.report.coverage import attempt_log_coverage, marked
from app.pipeline.report.extremes import most_retried_tasks, slowest_tasks
from app.pipeline.report.frames import ended_attempts, finished_tasks
from app.pipeline.report.labels import DIMENSIONS, OTHERS, Labels, busiest_queues, find_labels, labelled
from app.pipeline.report.outcomes import (
    attempts_histogram,
    outcome_aggregates,
    rhythm,
    throughput_by_queue_and_hour,
)
from app.pipeline.report.reasons import TOP_REASONS, failure_reasons, failures, failures_total
from app.pipeline.report.run_time import attempt_aggregates, run_time_aggregates
from app.pipeline.report.summary import By, part, summarise
from app.pipeline.report.usage import usage_by_tenant
from app.pipeline.report.wait import wait_aggregates

Row = dict[str, Any]
OnStep = Callable[[str], None]
STEPS = ("reading", "outcomes and waits", "run times", "time", "failures", "single tasks", "backlog")


@dataclass(frozen=True, slots=True)
class Figures:
    """The tables of a report by name, the time they are about, and which names they kept."""

    made_at: datetime
    # None if nothing ended.
    span: Span | None
    labels: Mapping[str, Labels]
    tables: Mapping[str, pa.Table]

    def rows(self, table: str) -> list[Row]:
        """The rows of a table; none if there is no such table."""
        found = self.tables.get(table)
        return [] if found is None else found.to_pylist()

    def only_row(self, table: str) -> Row:
        """The row of a table that has one, or nothing."""
        return next(iter(self.rows(table)), {})

    @property
    def is_live(self) -> bool:
        return "backlog_by_queue" in self.tables


@dataclass(frozen=True, slots=True)
class Ended:
    """What the figures are made from: kept near, because every figure reads it again."""

    tasks: DataFrame
    attempts: DataFrame

    @classmethod
    def of(cls, recorded: Recorded) -> "Ended":
        return cls(finished_tasks(recorded.history, recorded.dead), ended_attempts(recorded.attempts))

    def persist(self) -> "Ended":
        # On disk: memory stays flat, and a live database is read once.
        return Ended(*(frame.persist(StorageLevel.DISK_ONLY) for frame in (self.tasks, self.attempts)))

    def unpersist(self) -> None:
        for frame in (self.tasks, self.attempts):
            frame.unpersist()

    def labelled(self, labels: Mapping[str, Labels]) -> "Ended":
        return Ended(labelled(self.tasks, labels), labelled(self.attempts, labels))


def compute_figures(recorded: Recorded, now: datetime, on_step: OnStep) -> Figures:
    """Every figure; `on_step` hears what comes next."""
    ended = Ended.of(recorded).persist()
    try:
        on_step("reading")
        span = find_span(ended.tasks, ended.attempts)
        labels = find_labels(ended.tasks, ended.attempts)
        tables = _tables(ended, ended.labelled(labels), span.width_seconds if span else HOUR, on_step)
        if recorded.live is not None:
            on_step("backlog")
            tables["backlog_by_queue"] = _backlog(recorded.live, labels, now)
    finally:
        ended.unpersist()
    return Figures(now, span, labels, tables)


def _tables(ended: Ended, cut: Ended, width_seconds: int, on_step: OnStep) -> dict[str, pa.Table]:
    coverage = attempt_log_coverage(cut.tasks, cut.attempts).toArrow()
    cut = Ended(cut.tasks, marked(cut.attempts, coverage))
    on_step("outcomes and waits")
    tables = _parts("tasks", summarise(cut.tasks, width_seconds, [*outcome_aggregates(), *wait_aggregates()]))
    on_step("run times")
    tables |= _parts(
        "attempts", summarise(cut.attempts, width_seconds, [*attempt_aggregates(), *run_time_aggregates()])
    )
    tables["usage_by_tenant"] = usage_by_tenant(tables["tasks_by_tenant"], tables["attempts_by_tenant"])
    on_step("time")
    tables["throughput_by_queue_and_hour"] = throughput_by_queue_and_hour(cut.tasks, width_seconds).toArrow()
    tables["busiest_queues"] = busiest_queues(ended.tasks, ended.attempts).toArrow()
    tables["rhythm"] = rhythm(cut.tasks).toArrow()
    tables["attempts_histogram"] = attempts_histogram(cut.tasks).toArrow()
    on_step("failures")
    failed = failures(ended.tasks, ended.attempts)
    tables["failure_reasons"] = failure_reasons(failed).limit(TOP_REASONS).toArrow()
    tables["failures"] = failures_total(failed).toArrow()
    on_step("single tasks")
    tables["slowest_tasks"] = slowest_tasks(ended.attempts).toArrow()
    tables["most_retried_tasks"] = most_retried_tasks(ended.tasks).toArrow()
    return {**tables, "attempt_log": coverage}


def _parts(name: str, summary: DataFrame) -> dict[str, pa.Table]:
    """A summary in one table for each thing that it is broken down by: `tasks`, `tasks_by_queue` and so on."""
    collected = summary.toArrow()
    return {name if by.column is None else f"{name}_by_{by.column}": part(collected, by) for by in By}


def _backlog(live: DataFrame, labels: Mapping[str, Labels], now: datetime) -> pa.Table:
    return backlog_by_queue(labelled(live, {"queue": labels["queue"]}), now).toArrow()


def busiest(rows: Sequence[Row], figure: str) -> list[Row]:
    """The same rows, the largest figure first, and what is many names in one last."""
    return sorted(rows, key=lambda row: (_is_many(row), -(row[figure] or 0)))


def _is_many(row: Row) -> bool:
    return any(row.get(dimension) == OTHERS for dimension in DIMENSIONS)
