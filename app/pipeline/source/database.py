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

# The revision of the schema that `tables.py` describes: executors have no migrations to look it up in.
SCHEMA_REVISION = "0004"
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


@dataclass(frozen=True)
class Database(ABC):
    """A database by its address. It holds no connection, so that it can be sent to other processes."""

    address: Address
    name: ClassVar[str]

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
        """The rows in a range of keys, read by one statement in a transaction of its own, batch by batch."""

    def check(self) -> None:
        """Raises `PipelineError` unless the database answers and has the schema that is known here."""
        revision = self.revision()
        if revision != SCHEMA_REVISION:
            raise PipelineError(
                f"the database is at schema revision {revision or 'nothing'}, this version of LeaseMQ reads"
                f" {SCHEMA_REVISION}: run `leasemq migrate`, or the LeaseMQ that the database belongs to"
            )

    def no_answer(self, error: BaseException) -> PipelineError:
        """What is told of a database that cannot be asked: the driver's reason in a line, without the password."""
        reason = " ".join(str(error).split())
        if self.address.password:
            reason = reason.replace(self.address.password, "***")
        return PipelineError(f"the database cannot be read: {reason}")


def write_url(scheme: str, address: Address) -> str:
    """The address as a URL for drivers that take no other form, without options."""
    who = quote(address.user, safe="")
    if address.password:
        who += f":{quote(address.password, safe='')}"
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = f":{address.port}" if address.port else ""
    return f"{scheme}://{who}{'@' if who else ''}{host}{port}/{quote(address.database, safe='')}"
