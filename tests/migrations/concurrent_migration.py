"""`python -m tests.migrations.concurrent_migration URL`: says `ready`, waits for a line, and migrates."""

import asyncio
import sys

from app.repository.factory import connect_dialect
from app.repository.schema import check_schema, migrate


async def main(database_url: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    dialect = connect_dialect(database_url)
    await migrate(dialect)
    await check_schema(dialect)
    await dialect.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
