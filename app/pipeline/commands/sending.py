"""The options that `load` and `replay` share: where tasks go, how fast, and under which job."""

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex

from app.pipeline.commands.options import add_master, duration
from app.pipeline.errors import PipelineError
from app.pipeline.sink.options import MAX_RATE

# Not an option: the command line of a process is for everybody to see.
API_KEY = "LEASEMQ_API_KEY"
# They say how to send, not what: a job may be taken up again with others.
HOW = frozenset({"run", "master", "job", "state", "rate", "dry_run", "dedupe_window", "on_refused", "refused_path"})


def add_sending(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--to", required=True, metavar="URL", help="the service, for example http://127.0.0.1:8080")
    parser.add_argument("--rate", type=float, metavar="N", help="at most so many tasks a second, over all")
    parser.add_argument("--dry-run", action="store_true", help="tell how many there are, show some, send nothing")
    parser.add_argument("--job", metavar="ID", help="go on with a job that was begun under this id")
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="where the records of jobs are (~/.local/state/leasemq/jobs)"
    )
    parser.add_argument(
        "--dedupe-window", type=duration, default=timedelta(days=1), metavar="TIME",
        help="how long a done task is remembered, so that it is not sent again: longer than the job takes (1d)",
    )  # fmt: skip
    parser.add_argument(
        "--on-refused", choices=("fail", "skip"), default="fail",
        help="what refused rows mean (fail): that the job fails at its end, or nothing; skip needs --refused-path",
    )  # fmt: skip
    parser.add_argument("--refused-path", metavar="DIR", help="where refused rows are written, each with its reason")
    add_master(parser)


def sending_options(options: argparse.Namespace, command: str) -> dict[str, str]:
    """What the sink takes, of what was said; raises `PipelineError` for what cannot be done."""
    if options.rate is not None and not 0 < options.rate <= MAX_RATE:
        raise PipelineError(f"--rate is more than 0 and at most {MAX_RATE}, not {options.rate:g}")
    if options.on_refused == "skip" and options.refused_path is None:
        raise PipelineError("--on-refused skip needs --refused-path DIR: where the refused rows are written")
    given = {
        "url": options.to,
        "job": options.job or new_job(command),
        "queue": options.queue,
        "tenant": getattr(options, "tenant", None),
        "dedupe_seconds": options.dedupe_window.total_seconds(),
        "rate_per_second": options.rate,
        "on_refused": options.on_refused,
        "refused_path": options.refused_path,
        "api_key": os.environ.get(API_KEY),
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def new_job(command: str) -> str:
    return f"{command}-{datetime.now(UTC):%Y%m%d}-{token_hex(4)}"


def purpose(options: argparse.Namespace, command: str) -> Mapping[str, object]:
    """What the job is to do: the options that must be the same when it is taken up again."""
    return {"command": command, **{name: value for name, value in vars(options).items() if name not in HOW}}
