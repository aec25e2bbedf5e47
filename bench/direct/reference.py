"""The reference of a round: how many single-row inserts a second the machine commits just now."""

import asyncio
import time

import asyncpg

CONNECTIONS = 8
CREATE = "CREATE TABLE IF NOT EXISTS reference (id bigserial PRIMARY KEY, payload bytea NOT NULL)"
INSERT = "INSERT INTO reference (payload) VALUES ($1)"


async def _insert_until(database_url: str, deadline: float) -> int:
    connection = await asyncpg.connect(database_url)
    try:
        inserted = 0
        while time.monotonic() < deadline:
            await connection.execute(INSERT, b"x" * 100)
            inserted += 1
        return inserted
    finally:
        await connection.close()


async def _measure(database_url: str, seconds: float) -> float:
    connection = await asyncpg.connect(database_url)
    await connection.execute(CREATE)
    await connection.close()
    deadline = time.monotonic() + seconds
    inserted = await asyncio.gather(*(_insert_until(database_url, deadline) for _ in range(CONNECTIONS)))
    return sum(inserted) / seconds


def measure_reference(database_url: str, seconds: float) -> float:
    """Inserts a second, one a transaction, on 8 connections."""
    return asyncio.run(_measure(database_url, seconds))
