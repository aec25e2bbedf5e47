"""What the commands share: their options, and the refusal where Spark is not installed."""

import argparse
import re
from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec

from app.pipeline.errors import PipelineError
from app.settings import Settings

Run = Callable[[Settings, argparse.Namespace], int]

NEEDED = ("pyspark", "pyarrow", "pandas")
DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def add_master(parser: argparse.ArgumentParser) -> None:
    """The option `--master`, for `open_session`."""
    parser.add_argument(
        "--master",
        metavar="URL",
        help="Spark's master, for example spark://host:7077; by default this machine's cores (local[*])",
    )


def add_database_url(parser: argparse.ArgumentParser) -> None:
    """The option `--database-url`; what it says is found in the settings."""
    parser.add_argument("--database-url", metavar="URL", help="the store (MQ_DATABASE_URL)")


def duration(text: str) -> timedelta:
    """A length of time as users write it: `90s`, `15m`, `12h`, `7d`, `2w`."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write for example 90s, 15m, 12h, 7d or 2w")
    try:
        return timedelta(**{UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is too long") from None


def with_spark(run: Run) -> Run:
    """The same command, which refuses in a line where Spark is not installed."""

    def checked(settings: Settings, options: argparse.Namespace) -> int:
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            raise PipelineError(
                f"the pipeline needs {', '.join(missing)}, not installed here: pip install 'leasemq[pipeline]'"
            )
        return run(settings, options)

    return checked
