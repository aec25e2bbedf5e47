"""What the reader asks of a database, whatever its kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import quote

import pyarrow as pa

from app.pipeline.errors import PipelineError
from app.pipeline.source.comparisons import Comparison
from app.pipeline.source.keys import KeyRange
from app.pipeline.source.scan import Scan
from app.pipeline.tables import Table

# The revision of the schema that `tables.py` describes: what is sent to a cluster has no migrations to look it up in.
SCHEMA_REVISION = "0009"
REVISION = "SELECT version_num FROM alembic_version"


@dataclass(frozen=True)
class Address:
    """Where a database is, and who asks."""

    database: str
    host: str = "localhost"
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str) -> str | None:
        """What the URL says of it."""
        return dict(self.options).get(name)

    def seconds(self, name: str, default: float) -> float:
        """An option that is a length of time. Raises `PipelineError` if it is none."""
        try:
            return float(dict(self.options).get(name, default))
        except ValueError:
            raise PipelineError(f"the option {name} of the database URL must be a number of seconds") from None


@dataclass(frozen=True)
class Database(ABC):
    """A database by its address. It holds no connection, so that it can be sent to other processes."""

    address: Address
    name: ClassVar[str]
    # What its URL may say behind the `?`: all of it is honoured here as it is by the service's own driver.
    known_options: ClassVar[frozenset[str]]

    @abstractmethod
    def revision(self) -> str | None:
        """The revision of its schema, None if it has none. Raises `PipelineError` if it cannot be asked."""

    @abstractmethod
    def key_range(self, table: Table) -> KeyRange:
        """The least and the greatest key of a table at this moment."""

    @abstractmethod
    def render(self, comparison: Comparison) -> str:
        """A condition as SQL."""

    @abstractmethod
    def read(self, scan: Scan, keys: KeyRange) -> Iterator[pa.RecordBatch]:
        """The rows in a range of keys, batch by batch, each read once, in transactions that are short."""

    def check(self) -> None:
        """Raises `PipelineError` unless the database answers and has the schema that is known here."""
        refuse_other_revision(self.revision())

    def checked_key_range(self, table: Table) -> KeyRange:
        """As `key_range`, after a `check`."""
        self.check()
        return self.key_range(table)

    def no_answer(self, error: BaseException) -> PipelineError:
        """What is told of a database that cannot be asked: the driver's reason in a line, without the password."""
        reason = " ".join(str(error).split())
        if self.address.password:
            reason = reason.replace(self.address.password, "***")
        return PipelineError(f"the database cannot be read: {reason}")


def refuse_other_revision(revision: str | None) -> None:
    """Raises `PipelineError` unless it is the revision that is known here."""
    if revision != SCHEMA_REVISION:
        raise PipelineError(
            f"the database is at schema revision {revision or 'nothing'}, this version of LeaseMQ reads"
            f" {SCHEMA_REVISION}: run `leasemq migrate`, or the LeaseMQ that the database belongs to"
        )


def write_url(scheme: str, address: Address) -> str:
    """The address as a URL for drivers that take no other form, without options."""
    who = quote(address.user, safe="")
    if address.password:
        who += f":{quote(address.password, safe='')}"
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = f":{address.port}" if address.port else ""
    return f"{scheme}://{who}{'@' if who else ''}{host}{port}/{quote(address.database, safe='')}"
