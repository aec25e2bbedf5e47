"""The database that is archived: everything that is asked of it but the rows themselves."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.pipeline.archive.adapters import ADAPTERS, Adapter
from app.pipeline.errors import PipelineError, PipelineStopped
from app.pipeline.source.database import refuse_other_revision
from app.repository.connection import Row
from app.repository.dialect import ErrorKind
from app.repository.factory import connect_dialect
from app.repository.schema import read_revision
from app.repository.statements import load_statements

TRIES = 8
RETRY_SECONDS = 0.25
UNREACHABLE = "The database does not answer."


class ArchivedDatabase:
    """Short transactions, each a statement by itself; what fails for a moment is tried again."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._dialect = adapter.dialect
        self._statements = load_statements(self._dialect.name, __package__)

    async def identity(self) -> str:
        """What tells this database from others, and names no secret."""
        return str((await self.rows("identity"))[0]["identity"])

    async def now(self) -> datetime:
        """The database's clock."""
        now: datetime = (await self.rows("clock", now=self._dialect.clock()))[0]["now"]
        return now

    async def rows(self, statement: str, **parameters: object) -> list[Row]:
        """The rows of a statement that changes nothing."""
        rows, _ = await self._run(statement, parameters, write=False)
        return rows

    async def delete(self, statement: str, ids: Sequence[int], instants: Sequence[int]) -> int:
        """Deletes rows by their keys in one transaction, and tells how many were there unchanged."""
        _, count = await self._run(statement, self.adapter.keys(ids, instants), write=True)
        return count

    async def rest(self, since: float) -> None:
        """Leaves the database to others for a while after work that began at an instant of `time.monotonic`."""
        await asyncio.sleep((time.monotonic() - since) * self.adapter.pace.rest)

    async def _run(self, statement: str, parameters: Mapping[str, object], *, write: bool) -> tuple[list[Row], int]:
        for tried in range(TRIES):
            try:
                return await self._run_once(statement, parameters, write=write)
            except (DBAPIError, OSError, TimeoutError) as error:
                if not self._is_passing(error):
                    raise
                await asyncio.sleep(RETRY_SECONDS * tried)
        raise PipelineStopped(UNREACHABLE)

    async def _run_once(
        self, statement: str, parameters: Mapping[str, object], *, write: bool
    ) -> tuple[list[Row], int]:
        encoded = {name: self._encode(value) for name, value in parameters.items()}
        async with self._dialect.connect(write=write) as connection:
            result: Any = await connection.execute(self._statements[statement], encoded)
            rows = [self._dialect.decode(row) for row in result.mappings()] if result.returns_rows else []
            # A statement that deletes may be repeated: what is gone is gone.
            await connection.commit()
            return rows, 0 if result.returns_rows else result.rowcount

    def _encode(self, value: object) -> object:
        return self._dialect.encode(value) if isinstance(value, datetime) else value

    def _is_passing(self, error: Exception) -> bool:
        return not isinstance(error, DBAPIError) or self._dialect.kind_of(error) is not ErrorKind.OTHER


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[ArchivedDatabase]:
    """A database whose schema is this version's; raises PipelineError for anything else."""
    try:
        dialect = connect_dialect(url)
    except ValueError as error:
        raise PipelineError(str(error)) from error
    try:
        if dialect.name == "sqlite":
            _refuse_missing(dialect.engine.url.database)
        refuse_other_revision(await read_revision(dialect))
        yield ArchivedDatabase(ADAPTERS[dialect.name](dialect))
    except (DBAPIError, OSError, TimeoutError) as error:
        # The text of a driver's error may quote the URL.
        cause = getattr(error, "orig", None) or error
        raise PipelineError(f"The database refused or does not answer ({type(cause).__name__}).") from error
    finally:
        await dialect.close()


def _refuse_missing(path: str | None) -> None:
    """To connect would make an empty one."""
    if path is None or not Path(path).is_file():
        raise PipelineError(f"There is no SQLite database {path}.")
