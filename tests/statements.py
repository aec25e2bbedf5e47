"""Being told of the statements that a dialect sends."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from app.repository.connection import Connection, Row
from app.repository.dialect import Dialect

# The name of a statement, and its parameters.
Look = Callable[[str, Mapping[str, object]], None]
Open = Callable[..., AbstractAsyncContextManager[Connection]]
OPENED_BY = ("transaction", "single_statement")


@dataclass(frozen=True)
class Watched:
    """A connection that tells of each statement before it is sent."""

    connection: Connection
    look: Look

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        self.look(statement, parameters)
        return await self.connection.fetch(statement, parameters)

    async def run(self, statement: str, parameters: Mapping[str, object]) -> None:
        self.look(statement, parameters)
        await self.connection.run(statement, parameters)

    async def run_each(self, statement: str, records: Sequence[Row]) -> None:
        for record in records:
            self.look(statement, record)
        await self.connection.run_each(statement, records)

    async def flush(self) -> None:
        await self.connection.flush()

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()


def watch(dialect: Dialect, look: Look) -> None:
    """Lets `look` see every statement from now on."""
    for name in OPENED_BY:
        vars(dialect)[name] = _watching(getattr(dialect, name), look)


def _watching(opened: Open, look: Look) -> Open:
    @asynccontextmanager
    async def watching(**options: Any) -> AsyncIterator[Connection]:
        async with opened(**options) as connection:
            yield Watched(connection, look)

    return watching


@contextmanager
def watched(dialect: Dialect, look: Look) -> Iterator[None]:
    """Lets `look` see every statement meanwhile."""
    watch(dialect, look)
    try:
        yield
    finally:
        for name in OPENED_BY:
            del vars(dialect)[name]
