"""What a transaction is carried on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

if TYPE_CHECKING:
    from app.repository.dialect import Dialect

Row = Mapping[str, Any]


class Connection(Protocol):
    """A connection on which a transaction has begun; statements are called by their names."""

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        """Runs a statement and gives its rows."""

    async def run(self, statement: str, parameters: Mapping[str, object]) -> None:
        """Runs a statement that gives no rows; it may go together with the next, and fail only then."""

    async def run_each(self, statement: str, records: Sequence[Row]) -> None:
        """Likewise once for each record."""

    async def flush(self) -> None:
        """Returns when all that was to be run has been."""

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


class SqlalchemyConnection:
    """See `Connection`; for the drivers that are spoken to through SQLAlchemy."""

    def __init__(self, dialect: "Dialect", connection: AsyncConnection) -> None:
        self._dialect = dialect
        self._connection = connection

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        result = await self._connection.execute(*self._dialect.prepare(statement, parameters))
        return [self._dialect.decode(row) for row in result.mappings()] if result.returns_rows else []

    async def run(self, statement: str, parameters: Mapping[str, object]) -> None:
        await self.fetch(statement, parameters)

    async def run_each(self, statement: str, records: Sequence[Row]) -> None:
        encode = self._dialect.encode
        await self._connection.execute(
            self._dialect.statements[statement],
            [{name: encode(value) for name, value in record.items()} for record in records],
        )

    async def flush(self) -> None:
        """Nothing is held back."""

    async def commit(self) -> None:
        await self._connection.commit()

    async def rollback(self) -> None:
        await self._connection.rollback()
