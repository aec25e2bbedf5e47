"""PostgreSQL by asyncpg itself: SQLAlchemy between the two would cost more than the statements do."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from app.repository.connection import Row
from app.repository.pool import PoolSettings
from app.repository.statements import leave_out, load_statements, optional_parameters

_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
# What SQLAlchemy's dialect takes for itself out of a URL.
_NOT_THE_DRIVERS = frozenset({"prepared_statement_cache_size", "prepared_statement_name_func", "async_fallback"})

Encode = Callable[[object], object]


class NumberedStatement:
    """A statement as asyncpg takes it: parameters by number instead of by name."""

    def __init__(self, sql: str) -> None:
        self.names: list[str] = []
        self.sql = _PARAMETER.sub(self._number, _COMMENT.sub("", sql))

    def _number(self, match: re.Match[str]) -> str:
        if match[1] not in self.names:
            self.names.append(match[1])
        return f"${self.names.index(match[1]) + 1}"


class NumberedStatements:
    """All statements of a dialect, each with and without the lines of parameters that need not be given."""

    def __init__(self, dialect: str, encode: Encode) -> None:
        self._encode = encode
        self._texts = load_statements(dialect)
        self._optional = {name: optional_parameters(sql) for name, sql in self._texts.items()}
        self._numbered: dict[tuple[str, frozenset[str]], NumberedStatement] = {}

    def prepare(self, statement: str, parameters: Mapping[str, object]) -> tuple[str, list[object]]:
        """A statement's text, and its parameters in order."""
        absent = frozenset(name for name in self._optional[statement] if parameters[name] is None)
        numbered = self._numbered.get((statement, absent))
        if numbered is None:
            numbered = NumberedStatement(leave_out(self._texts[statement], absent).text)
            self._numbered[statement, absent] = numbered
        return numbered.sql, [self._encode(parameters[name]) for name in numbered.names]


class AsyncpgConnection:
    """See `Connection`."""

    def __init__(self, driver: Any, statements: NumberedStatements) -> None:
        self.driver = driver
        self._statements = statements

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        sql, values = self._statements.prepare(statement, parameters)
        return cast(Sequence[Row], await self.driver.fetch(sql, *values))

    async def run(self, statement: str, parameters: Mapping[str, object]) -> None:
        await self.fetch(statement, parameters)

    async def run_each(self, statement: str, records: Sequence[Row]) -> None:
        for record in records:
            await self.run(statement, record)

    async def flush(self) -> None:
        """Nothing is held back."""

    async def commit(self) -> None:
        await self.driver.execute("COMMIT")

    async def rollback(self) -> None:
        await self.driver.execute("ROLLBACK")


class AsyncpgPool:
    """Connections, made when the first is asked for."""

    def __init__(self, engine: AsyncEngine, settings: PoolSettings, options: Mapping[str, Any]) -> None:
        _, of_url = engine.dialect.create_connect_args(engine.url)
        self._options = {name: value for name, value in of_url.items() if name not in _NOT_THE_DRIVERS} | dict(options)
        self._settings = settings
        self._pool: Any = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """A connection of the driver. One on which something was broken off is not given to anybody else."""
        pool = self._pool or await self._open()
        # The pool's own time limit would make a task for every acquire.
        async with asyncio.timeout(self._settings.wait_seconds):
            driver = await pool.acquire()
        try:
            yield driver
        except asyncio.CancelledError:
            driver.terminate()
            raise
        finally:
            await pool.release(driver)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def _open(self) -> Any:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    min_size=0, max_size=self._settings.size, reset=_leave_as_it_is, **self._options
                )
        return self._pool


async def _leave_as_it_is(driver: Any) -> None:
    """Every transaction is ended by the one who began it, and no session state is ever set."""
