"""Logs: standard error, one line an event, as text or as JSON."""

import asyncio
import json
import logging
import sys
import time
import traceback
from datetime import UTC, datetime

# What every record has; the rest was given by the caller and belongs to the event.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in _event(record).items() if name != "message")
        return f"{_time(record)} {record.levelname.lower():7} {_one_line(record.getMessage())}{_one_line(fields)}"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        head = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        return json.dumps({**head, **_event(record)}, default=str)


class RequestLog:
    """A line for each request. They are many, so they are written together, once in a round of the event loop."""

    NAME = "leasemq.http"

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._enabled = logging.getLogger(self.NAME).isEnabledFor(logging.INFO)
        self._lines: list[str] = []

    def write(self, request_id: str, method: str, path: str, status: int, seconds: float) -> None:
        if not self._enabled:
            return
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        line = self._json if self._as_json else self._text
        self._lines.append(line(request_id, method, path, status, round(seconds * 1000, 3)))

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        sys.stderr.write("".join(lines))
        sys.stderr.flush()

    @staticmethod
    def _text(request_id: str, method: str, path: str, status: int, milliseconds: float) -> str:
        fields = f"request_id={request_id} method={method} path={path} status={status} milliseconds={milliseconds}"
        return f"{_instant(time.time())} info    request {_one_line(fields)}\n"

    def _json(self, request_id: str, method: str, path: str, status: int, milliseconds: float) -> str:
        head = {"time": _instant(time.time()), "level": "info", "logger": self.NAME, "message": "request"}
        fields = {"request_id": request_id, "method": method, "path": path, "status": status}
        return json.dumps({**head, **fields, "milliseconds": milliseconds}) + "\n"


def configure_logs(level: str, *, as_json: bool) -> None:
    """Sends everything, the server's own lines included, to standard error in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # The steps of a migration are told by ours in one line.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    for driver in ("aiosqlite", "asyncmy", "asyncpg", "py4j", "sqlalchemy"):
        # In detail they tell statements with their values: payloads and secrets.
        logging.getLogger(driver).setLevel(logging.WARNING)
    # Its lines would repeat ours.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)


def _event(record: logging.LogRecord) -> dict[str, object]:
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    event = {"message": record.getMessage(), **given}
    if record.exc_info and record.exc_info[1] is not None:
        event["error"] = _where(record.exc_info[1])
    return event


def _where(error: BaseException) -> str:
    """The kind of error and the places it came by, without its text: that may quote a payload or a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    return f"{type(error).__name__} in {places}"


def _time(record: logging.LogRecord) -> str:
    return _instant(record.created)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
