"""Logs: standard error, one line an event, as text or as JSON."""

import json
import logging
import sys
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


def configure_logs(level: str, *, as_json: bool) -> None:
    """Sends everything, the server's own lines included, to standard error in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # The steps of a migration are told by ours in one line.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    for driver in ("aiosqlite", "asyncmy", "asyncpg", "sqlalchemy"):
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
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
