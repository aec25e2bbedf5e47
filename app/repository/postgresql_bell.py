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
RING = text("SELECT pg_notify(:channel, told.message) FROM unnest(CAST(:messages AS text[])) AS told (message)")


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
        messages = [msgspec.json.encode(queue).decode() for queue in queues]
        async with self._engine.connect() as connection:
            await connection.execute(RING, {"channel": CHANNEL, "messages": messages})

    async def listen(self, heard: Callable[[str, str], object]) -> None:
        def on_notification(connection: object, pid: int, channel: str, message: object) -> None:
            tenant_id, queue = msgspec.json.decode(str(message), type=tuple[str, str])
            heard(tenant_id, queue)

        async with self._engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            ended = asyncio.Event()
            driver.add_termination_listener(lambda driver: ended.set())
            await driver.add_listener(CHANNEL, on_notification)
            try:
                while not await _is_set(ended, PROBE_SECONDS):
                    # A connection whose other side went without a word says so only when it is used.
                    await connection.execute(text("SELECT 1"))
                raise ConnectionError("the connection was ended")
            finally:
                # Of a connection that may be silent nothing more is asked.
                driver.terminate()
                await connection.invalidate()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Waits for the event, so long at most; whether it came."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
