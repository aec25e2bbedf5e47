"""PostgreSQL looks up what is pruned in a table of hashes, however little memory it is given."""

import pytest
from sqlalchemy import text

from app.pipeline.archive.adapters import PostgreSQLAdapter
from app.repository.statements import load_statements
from tests.conftest import MakeDatabase
from tests.pipeline.archive.ledger import open_ledger

LEAST_WORK_MEM = "64kB"


@pytest.mark.parametrize("table", ["history", "attempts", "dlq"])
async def test_rows_are_looked_up_in_a_table_of_hashes(make_database: MakeDatabase, table: str) -> None:
    """Else a transaction would compare each of its rows with each key."""
    ledger = await open_ledger(make_database("postgresql"))
    adapter = PostgreSQLAdapter(ledger.dialect)
    ids = range(adapter.pace.rows)
    statement = load_statements("postgresql", "app.pipeline.archive")[f"delete_{table}"].text
    async with ledger.dialect.connect(write=True) as connection:
        await connection.execute(text(f"SET LOCAL work_mem = '{LEAST_WORK_MEM}'"))
        plan = (await connection.execute(text(f"EXPLAIN {statement}"), adapter.keys(ids, ids))).scalars().all()
    await ledger.dialect.close()
    assert any("hashed SubPlan" in line for line in plan)
