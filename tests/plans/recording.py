"""What the repository sends to its database, and what the database makes of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from app.repository.asyncmy_connection import filled_in
from app.repository.dialect import Dialect
from app.repository.mysql import MySQL
from app.repository.postgresql import PLAN_OF_SHORTCUTS, PLANNING, PostgreSQL
from tests.plans.plan import LARGE, Plan, mysql_tree, read_mysql, read_postgresql, read_sqlite
from tests.statements import watched

# So often PostgreSQL plans a statement for its parameters before it considers a plan for any.
CUSTOM_PLANS = 5

# But for the plan cache, which each statement has in its own way.
AS_THE_SERVICE_PLANS = [f"SET LOCAL {name} = {value}" for name, value in PLANNING.items() if name != "plan_cache_mode"]

# What MySQL says instead of a tree, of an UPDATE or a DELETE of one table.
NO_TREE = "not executable by iterator executor"

_numbers = count(1)


@dataclass(frozen=True)
class Sent:
    """A statement as the driver got it."""

    sql: str
    parameters: Any
    # Whether the server makes one plan for any parameters from the start.
    is_planned_once: bool = False

    @property
    def about_large_tables(self) -> bool:
        return any(table in self.sql for table in LARGE)


@contextmanager
def recorded(dialect: Dialect) -> Iterator[list[Sent]]:
    """Every statement that is sent meanwhile."""
    sent: list[Sent] = []
    if isinstance(dialect, PostgreSQL | MySQL):
        as_sent: Any = as_sent_to_postgresql if isinstance(dialect, PostgreSQL) else _as_sent_to_mysql
        with watched(dialect, lambda name, parameters: sent.append(as_sent(dialect, name, parameters))):
            yield sent
        return

    def note(*arguments: Any) -> None:
        _, _, sql, parameters, _, many = arguments
        sent.append(Sent(sql, parameters[0] if many else parameters))

    event.listen(dialect.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(dialect.engine.sync_engine, "before_cursor_execute", note)


def as_sent_to_postgresql(dialect: PostgreSQL, name: str, parameters: Mapping[str, object]) -> Sent:
    sql, values = dialect.numbered.prepare(name, parameters)
    return Sent(sql, values, is_planned_once=name.endswith("_at_once"))


def _as_sent_to_mysql(dialect: Any, name: str, parameters: Mapping[str, object]) -> Sent:
    """Its parameters stand in the statement, which is itself to be filled in by nobody else."""
    statement, values = dialect.prepare(name, parameters)
    return Sent(filled_in(statement, values).replace("%", "%%"), values)


async def explain(dialect: Dialect, sent: Sent) -> list[Plan]:
    """The plans of a statement: one for its own parameters, and where the server may keep one for any, that too."""
    async with dialect.connect(write=False) as connection:
        if dialect.name == "postgresql":
            await _plan_as_the_service(connection)
            lasting = read_postgresql(sent.sql, await _postgresql_lasting(connection, sent))
            plans = [await _postgresql_own(connection, sent), lasting]
        elif dialect.name == "mysql":
            plans = [await _mysql(connection, sent)]
        else:
            plans = [await _sqlite(connection, sent)]
        await connection.rollback()
    return plans


async def _plan_as_the_service(connection: AsyncConnection) -> None:
    for setting in AS_THE_SERVICE_PLANS:
        await connection.exec_driver_sql(setting)


async def _postgresql_own(connection: AsyncConnection, sent: Sent) -> Plan:
    result = await connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {sent.sql}", tuple(sent.parameters))
    return read_postgresql(sent.sql, result.scalar_one())


async def _postgresql_lasting(connection: AsyncConnection, sent: Sent, how: str = "") -> Any:
    """The plan that the server comes to when the statement is run again and again: it may be one for any parameters."""
    name = f"plan_{next(_numbers)}"
    driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None
    if sent.is_planned_once:
        await driver.execute(f"SET LOCAL plan_cache_mode = {PLAN_OF_SHORTCUTS}")
    await driver.execute(f"PREPARE {name} AS {sent.sql}")
    arguments = f"({', '.join(_literal(value) for value in sent.parameters)})" if sent.parameters else ""
    for _ in range(CUSTOM_PLANS):
        await driver.execute(f"EXPLAIN EXECUTE {name}{arguments}")
    explained = await driver.fetchval(f"EXPLAIN ({how}FORMAT JSON) EXECUTE {name}{arguments}")
    await driver.execute(f"DEALLOCATE {name}")
    return explained


def _literal(value: object) -> str:
    """A parameter as text, which the server reads as whatever type it is to be."""
    if value is None:
        return "NULL"
    return "'" + _text(value).replace("'", "''") + "'"


def _element(value: object) -> str:
    escaped = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return "NULL" if value is None else f'"{escaped}"'


def _text(value: object) -> str:
    if isinstance(value, list):
        return "{" + ",".join(map(_element, value)) + "}"
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} seconds"
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


async def _mysql(connection: AsyncConnection, sent: Sent) -> Plan:
    tree = (await connection.exec_driver_sql(f"EXPLAIN FORMAT=TREE {sent.sql}")).scalar_one()
    if NO_TREE in tree:
        rows = await connection.exec_driver_sql(f"EXPLAIN FORMAT=TRADITIONAL {sent.sql}")
        tree = mysql_tree((row.table, row.type, row.rows) for row in rows)
    return read_mysql(sent.sql, tree)


async def _sqlite(connection: AsyncConnection, sent: Sent) -> Plan:
    result = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sent.sql}", sent.parameters)
    return read_sqlite(sent.sql, [tuple(row) for row in result])


async def pages_read(dialect: PostgreSQL, sent: Sent) -> int:
    """The pages that PostgreSQL looks at by the plan that it comes to, for a statement that is taken back."""
    async with dialect.connect(write=True) as connection:
        await _plan_as_the_service(connection)
        explained = await _postgresql_lasting(connection, sent, "ANALYZE, BUFFERS, ")
        await connection.rollback()
    return int(explained[0]["Plan"]["Shared Hit Blocks"])


async def rows_read(dialect: Dialect, sent: Sequence[Sent]) -> int:
    """About how many rows and index entries the database looks at for these statements, which are taken back."""
    async with dialect.connect(write=True) as connection:
        count = sum([await COUNTERS[dialect.name](connection, statement) for statement in sent])
        await connection.rollback()
    return count


async def _rows_of_postgresql(connection: AsyncConnection, sent: Sent) -> int:
    result = await connection.exec_driver_sql(
        f"EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON) {sent.sql}", tuple(sent.parameters)
    )
    document = result.scalar_one()[0]
    return _postgresql_rows(document["Plan"])


def _postgresql_rows(plan: dict[str, Any]) -> int:
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter")
    own = plan["Actual Rows"] + sum(plan.get(key, 0) for key in removed)
    read = own * plan["Actual Loops"] if plan.get("Relation Name") in LARGE else 0
    return int(read) + sum(_postgresql_rows(child) for child in plan.get("Plans", ()))


async def _rows_of_mysql(connection: AsyncConnection, sent: Sent) -> int:
    await connection.exec_driver_sql("FLUSH STATUS")
    await connection.exec_driver_sql(sent.sql)
    counts = await connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'")
    return sum(int(row.Value) for row in counts)


async def _rows_of_sqlite(connection: AsyncConnection, sent: Sent) -> int:
    """SQLite tells of no rows, but of the steps of its machine: a row takes about ten."""
    driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None
    ticks = 0

    def tick() -> int:
        nonlocal ticks
        ticks += 1
        return 0

    await driver.set_progress_handler(tick, 100)
    try:
        await connection.exec_driver_sql(sent.sql, sent.parameters)
    finally:
        await driver.set_progress_handler(None, 0)
    return ticks * 10


COUNTERS = {"postgresql": _rows_of_postgresql, "mysql": _rows_of_mysql, "sqlite": _rows_of_sqlite}
