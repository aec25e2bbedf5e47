"""A report from beginning to end: read, compute, advise, draw, write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from app.pipeline.advice.advise import advise
from app.pipeline.advice.findings import QueueKey, QueuePolicy, Target
from app.pipeline.advice.policies import read_policies
from app.pipeline.errors import PipelineError
from app.pipeline.messages import SPARK_ERRORS, one_line
from app.pipeline.report.advised import advice_table
from app.pipeline.report.figures import STEPS as FIGURE_STEPS
from app.pipeline.report.figures import OnStep, compute_figures
from app.pipeline.report.frames import Period
from app.pipeline.report.output import PAGE, refuse_foreign, write_report
from app.pipeline.report.page.page import render
from app.pipeline.report.recorded import read_recorded
from app.pipeline.source.factory import find_database

STEPS = ("opening", *FIGURE_STEPS, "advice", "writing")


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What a report is made from, about, and where to."""

    lake: str
    out: Path
    live: str | None = None
    period: Period = field(default_factory=Period)
    target: Target = field(default_factory=Target)


def check_request(request: ReportRequest) -> dict[QueueKey, QueuePolicy]:
    """Raises PipelineError for what can be seen to fail without Spark; gives the settings of the live queues."""
    since, until = request.period.since, request.period.until
    if since is not None and until is not None and since >= until:
        raise PipelineError("--since must be before --until.")
    refuse_foreign(request.out)
    if request.live is None:
        return {}
    find_database(request.live).check()
    return read_policies(request.live)


def make_report(
    spark: SparkSession,
    request: ReportRequest,
    policies: Mapping[QueueKey, QueuePolicy],
    now: datetime,
    on_step: OnStep,
) -> Path:
    """Makes the report and gives the path of its page; an older one is as it was until this one is whole."""
    on_step("opening")
    try:
        with read_recorded(spark, request.lake, request.live, request.period) as recorded:
            figures = compute_figures(recorded, now, on_step)
            on_step("advice")
            advised = advise(recorded, policies, request.target, now)
    except SPARK_ERRORS as error:
        raise PipelineError(f"The report cannot be made: {one_line(error)}") from error
    on_step("writing")
    write_report(request.out, render(figures, advised), {**figures.tables, "advice": advice_table(advised)})
    return request.out / PAGE
