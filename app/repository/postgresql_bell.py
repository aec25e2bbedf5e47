"""LISTEN and NOTIFY: how replicas on one PostgreSQL wake each other."""

import asyncio
from collections.abc import Callable, Collection

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

# One to listen, one to ring: those who work need not share theirs.
CONNECTIONS = 2
CHANNEL = "leasemq"
PROBE_SECONDS = 5.0


class PostgreSQLBell:
    """Rings by NOTIFY in a transaction of its own: inside an enqueue's it would serialise all commits."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = create_async_engine(
            engine.url,
            isolation_level="AUTOCOMMIT",
            pool_size=CONNECTIONS,
            max_overflow=0,
            connect_args={"server_settings": {"application_name": "leasemq bell"}},
        )

    async def close(self) -> None:
        await self._engine.dispose()

    async def ring(self, queues: Collection[tuple[str, str]]) -> None:
        async with self._engine.connect() as connection:
            for queue in queues:
                message = msgspec.json.encode(queue).decode()
                await connection.execute(
                    text("SELECT pg_notify(:channel, :message)"), {"channel": CHANNEL, "message": message}
                )

    async def listen(self, heard: Callable[[str, str], None]) -> None:
        def on_notification(connection: object, pid: int, channel: str, message: object) -> None:
            tenant_id, queue = msgspec.json.decode(str(message), type=tuple[str, str])
            heard(tenant_id, queue)

        async with self._engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            await driver.add_listener(CHANNEL, on_notification)
            try:
                while True:
                    # A connection that died says so only when it is used.
                    await asyncio.sleep(PROBE_SECONDS)
                    await connection.execute(text("SELECT 1"))
            finally:
                if not driver.is_closed():
                    await driver.remove_listener(CHANNEL, on_notification)
