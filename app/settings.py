"""Everything that can be set, once: a variable `MQ_NAME` for each field."""

from collections.abc import Mapping
from enum import StrEnum
from os import environ
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.domain.task import AttemptLog

PREFIX = "MQ_"
# The tests' own variables begin likewise.
TEST_PREFIX = "MQ_TEST_"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Batching(StrEnum):
    ON = "on"
    OFF = "off"


Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class SettingsError(Exception):
    """A variable has a value that it cannot have."""


class Settings(BaseModel):
    """The settings of one process; read once, passed down, never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str = Field(
        default="sqlite:///leasemq.db",
        description="The store: `postgresql://…`, `mysql://…` (8.0.17 or newer) or `sqlite:///file.db`.",
    )
    host: str = Field(default="127.0.0.1", description="The address to bind to.")
    port: int = Field(default=8080, ge=0, le=65535, description="The port to bind to; 0 takes a free one.")
    workers: int = Field(default=1, ge=1, le=64, description="Server processes on the same port.")
    insecure: bool = Field(
        default=False,
        description="`true` lets a server without keys bind to addresses other than loopback and answer to any `Host`.",
    )
    auto_migrate: bool = Field(default=True, description="`false` leaves the schema to `leasemq migrate`.")
    start_wait_seconds: Seconds = Field(
        default=30.0, description="How long to wait at the start for a database that does not answer yet."
    )
    database_pool_size: int = Field(default=10, ge=1, le=1000, description="Database connections of each process.")
    database_timeout_seconds: Seconds = Field(
        default=5.0, description="A database call that takes longer is answered by 503 `unavailable`."
    )
    database_lock_timeout_seconds: Seconds = Field(
        default=1.0, description="How long a statement waits for somebody else's lock (MySQL: whole seconds)."
    )
    batching: Batching = Field(
        default=Batching.ON,
        description="`on`: calls that arrive while a transaction is under way share the next one. `off`: one each.",
    )
    max_waiting: int = Field(
        default=10_000,
        ge=1,
        description="How many calls of a kind may wait for their transaction; beyond it, 503 `unavailable` at once.",
    )
    attempt_log: AttemptLog = Field(
        default=AttemptLog.ALL, description="Which attempts are logged: `all`, `failures` or `off`."
    )
    wait_poll_seconds: Seconds = Field(
        default=0.25,
        description="How often somebody looks for all who wait for work, in case that no wake-up came.",
    )
    janitor: bool = Field(
        default=True, description="`false` leaves the clearing away to other replicas; nothing else changes."
    )
    metrics_max_queues: int = Field(
        default=1000, ge=0, description="Queues with a label of their own in the metrics; the rest is `other`."
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="`debug`, `info`, `warning` or `error`.")
    log_format: LogFormat = Field(default=LogFormat.TEXT, description="`text`, or `json`: one object a line.")

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = environ) -> "Settings":
        """Reads the `MQ_*` variables; one that is empty counts as not given. Raises `SettingsError`."""
        given = {name: variables[variable] for name, variable in variable_names().items() if variables.get(variable)}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None


def variable_names() -> dict[str, str]:
    """The variable of each setting."""
    return {name: PREFIX + name.upper() for name in Settings.model_fields}


def unknown_variables(variables: Mapping[str, str] = environ) -> list[str]:
    """Variables that look like settings but are none: most likely typos."""
    known = set(variable_names().values())
    return sorted(
        name for name in variables if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX) and name not in known
    )


def _explain(problem: Any) -> str:
    # The value is not repeated: it may hold a password.
    return f"{PREFIX}{str(problem['loc'][0]).upper()}: {problem['msg']}"
