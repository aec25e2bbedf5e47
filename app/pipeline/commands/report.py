"""`leasemq pipeline report`: what the queue did, as tables and as one page."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from app.pipeline.commands.options import add_master, duration
from app.settings import Settings


def add_report(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("report", help="make tables and a page of what the queue did, with advice")
    parser.add_argument("--lake", required=True, metavar="DIR", help="a directory, or the URL of a Hadoop filesystem")
    parser.add_argument("--live", metavar="URL", help="a database whose tasks are told of too, archived or not")
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="the report's directory; an older report is replaced"
    )
    parser.add_argument(
        "--since", type=moment, metavar="WHEN", help="what ended from then on: 2026-03-01, 2026-03-01T06:00, or 7d ago"
    )
    parser.add_argument("--until", type=moment, metavar="WHEN", help="what ended before then; times are UTC")
    parser.add_argument(
        "--target-wait",
        type=duration,
        default="5s",
        metavar="TIME",
        help="the wait that the advised workers hold for 95 %% of tasks",
    )
    add_master(parser)
    parser.set_defaults(run=run)


def moment(text: str) -> datetime:
    """A day or a time as ISO 8601, in UTC if it does not say otherwise; or a duration: so long ago."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return _ago(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def run(settings: Settings, options: argparse.Namespace) -> int:
    from app.pipeline.advice.findings import Target  # noqa: PLC0415
    from app.pipeline.lake import open_lake  # noqa: PLC0415
    from app.pipeline.report.frames import Period  # noqa: PLC0415
    from app.pipeline.report.make import STEPS, ReportRequest, check_request, make_report  # noqa: PLC0415
    from app.pipeline.report.progress import show_steps  # noqa: PLC0415
    from app.pipeline.session import open_session  # noqa: PLC0415

    request = ReportRequest(
        options.lake,
        options.out,
        options.live,
        Period(options.since, options.until),
        Target(wait_seconds=options.target_wait.total_seconds()),
    )
    # Before Spark starts, which takes a while.
    policies = check_request(request)
    spark = open_session("report", options.master)
    # What goes wrong is told by us, in one line.
    spark.sparkContext.setLogLevel("OFF")
    # Before anything is shown: it refuses what is no lake.
    open_lake(spark, options.lake)
    with show_steps(len(STEPS)) as on_step:
        page = make_report(spark, request, policies, datetime.now(UTC), on_step)
    print(page)
    return 0


def _ago(text: str) -> datetime:
    try:
        return datetime.now(UTC) - duration(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time; write for example 2026-03-01, 2026-03-01T06:00 or 7d"
        ) from None
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is too long ago") from None
