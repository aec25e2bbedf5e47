"""Runs the migrations on the connection that the service hands over, or on the database that MQ_DATABASE_URL names."""

import asyncio

from alembic import context
from sqlalchemy import Connection

from app.repository.factory import connect_engine
from app.settings import Settings


def run_on(connection: Connection) -> None:
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        context.run_migrations()


async def run_by_hand() -> None:
    engine = connect_engine(Settings.from_environment().database_url)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(run_on)
    finally:
        await engine.dispose()


given = context.config.attributes.get("connection")
if given is not None:
    run_on(given)
else:
    asyncio.run(run_by_hand())
