"""The options of `df.write.format("mq")`, read and checked once, on the driver."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar
from urllib.parse import urlsplit

from app.domain.identifiers import TENANT_MAX_LENGTH, is_name
from app.pipeline.errors import PipelineError

MAX_BATCH_ROWS = 1000
# A request has at most 8 MiB; the brackets around the tasks are few bytes.
MAX_BATCH_BYTES = 8 * 1024 * 1024 - 1024
MAX_RATE = 1_000_000
DAY_SECONDS = 86_400.0
# Without a colon: it parts the job from the row in a dedupe key.
JOB = re.compile(r"[A-Za-z0-9._-]{1,40}")
ON_REFUSED = ("fail", "skip")

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where rows go and how; it travels to the executors, and never shows its key."""

    url: str
    queue: str | None = None
    job: str = field(default_factory=lambda: f"write-{token_hex(8)}")
    # The column whose value is the row's identity; without one a digest of the row is.
    key: str | None = None
    # How long a done task holds its key: longer than the job and all its repetitions.
    dedupe_seconds: float = DAY_SECONDS
    tenant: str | None = None
    api_key: str | None = field(default=None, repr=False)
    batch_rows: int = MAX_BATCH_ROWS
    batch_bytes: int = MAX_BATCH_BYTES // 2
    # How long one batch is tried while the service is away or sheds load.
    retry_seconds: float = 300.0
    request_seconds: float = 60.0
    rate_per_second: float | None = None
    # How many partitions are written at the same time: they share the rate.
    parallelism: int | None = None
    on_refused: str = "fail"
    refused_path: str | None = None

    @property
    def share_per_second(self) -> float | None:
        """What one partition may send in a second."""
        if self.rate_per_second is None or self.parallelism is None:
            return None
        return self.rate_per_second / self.parallelism


def read_options(given: Mapping[str, str]) -> SinkOptions:
    """Raises `PipelineError` for an option that is unknown, wrong or missing."""
    known = {option.name for option in fields(SinkOptions)}
    if unknown := sorted(set(given) - known):
        raise PipelineError(f"unknown option {unknown[0]!r}; the options are {', '.join(sorted(known))}")
    if "url" not in given:
        raise PipelineError("the option 'url' is missing: where the service is, for example http://127.0.0.1:8080")
    if "job" in given and "key" not in given:
        raise PipelineError(
            "a job that can be repeated needs the option 'key': without a key column a row is known by its partition,"
            " and partitions may be cut in another way the next time"
        )
    read: dict[str, Any] = {name: READERS[name](name, text) for name, text in given.items()}
    return _check_together(SinkOptions(**read))


def _check_together(options: SinkOptions) -> SinkOptions:
    if options.rate_per_second is not None and options.parallelism is None:
        raise PipelineError(
            "'rate_per_second' needs 'parallelism': how many partitions are written at the same time"
            " (spark.sparkContext.defaultParallelism)"
        )
    if options.on_refused == "skip" and options.refused_path is None:
        raise PipelineError("on_refused=skip needs 'refused_path': where the refused rows are written")
    return options


def _url(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.query or parts.fragment or parts.username is not None:
        # Not told as it is: somebody may have put a password into it.
        raise PipelineError(f"{name} is no address of a service; write for example http://127.0.0.1:8080")
    return text.rstrip("/")


def _text(name: str, text: str) -> str:
    if not text:
        raise PipelineError(f"{name} is empty")
    return text


def _place(name: str, text: str) -> str:
    """A URL as it is, a path as it is from here: an executor may be at work in another folder."""
    return text if urlsplit(text).scheme else str(Path(_text(name, text)).absolute())


def _name(name: str, text: str) -> str:
    if not is_name(text, TENANT_MAX_LENGTH if name == "tenant" else 255):
        raise PipelineError(f"{name} {text!r} is no name: A-Z a-z 0-9 . _ : - only")
    return text


def _secret(name: str, text: str) -> str:
    if not text or not text.isascii() or not text.isprintable():
        raise PipelineError(f"{name} holds what no header can")
    return text


def _job(name: str, text: str) -> str:
    if JOB.fullmatch(text) is None:
        raise PipelineError(f"{name} {text!r} is no job id: 1 to 40 of A-Z a-z 0-9 . _ -")
    return text


def _choice(name: str, text: str) -> str:
    if text not in ON_REFUSED:
        raise PipelineError(f"{name} is {' or '.join(ON_REFUSED)}, not {text!r}")
    return text


def _number(parse: Callable[[str], Value], least: float, most: float) -> Callable[[str, str], Value]:
    """Reads a number that is more than `least` and at most `most`."""

    def read(name: str, text: str) -> Value:
        try:
            value = parse(text)
        except ValueError:
            raise PipelineError(f"{name} is no number: {text!r}") from None
        if not least < value <= most:  # type: ignore[operator]
            raise PipelineError(f"{name} is out of range: {text}")
        return value

    return read


READERS: dict[str, Callable[[str, str], Any]] = {
    "url": _url,
    "queue": _name,
    "job": _job,
    "key": _text,
    "dedupe_seconds": _number(float, 0, 100 * 365 * DAY_SECONDS),
    "tenant": _name,
    "api_key": _secret,
    "batch_rows": _number(int, 0, MAX_BATCH_ROWS),
    "batch_bytes": _number(int, 0, MAX_BATCH_BYTES),
    "retry_seconds": _number(float, 0, math.inf),
    "request_seconds": _number(float, 0, 3600),
    "rate_per_second": _number(float, 0, MAX_RATE),
    "parallelism": _number(int, 0, 100_000),
    "on_refused": _choice,
    "refused_path": _place,
}
