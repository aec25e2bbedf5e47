"""The settings of the queues, read from a live database."""

import asyncio
from pathlib import Path

from sqlalchemy import RowMapping, text
from sqlalchemy.exc import SQLAlchemyError

from app.domain.backoff import Backoff
from app.pipeline.advice.findings import QueueKey, QueuePolicy
from app.pipeline.errors import PipelineError
from app.repository.dialect import Dialect
from app.repository.factory import connect_dialect

SELECT_QUEUES = text("""
    SELECT tenant_id, name, lease_seconds, max_lease_seconds, max_attempts, backoff_base_seconds, backoff_factor,
        backoff_max_seconds, backoff_jitter, rate_per_second, concurrency_limit, paused
    FROM mq_queues
""")


def read_policies(database_url: str) -> dict[QueueKey, QueuePolicy]:
    """The policy of every queue that the database knows. Raises PipelineError if it cannot be read."""
    try:
        dialect = connect_dialect(database_url)
        _refuse_missing_file(dialect)
        rows = asyncio.run(_read_rows(dialect))
    except ValueError as error:
        raise PipelineError(str(error)) from error
    except (SQLAlchemyError, OSError) as error:
        # The driver's message may hold the URL, and with it a password.
        raise PipelineError(f"the settings of the queues cannot be read ({type(error).__name__})") from error
    return {QueueKey(row["tenant_id"], row["name"]): to_policy(row) for row in rows}


def to_policy(row: RowMapping) -> QueuePolicy:
    """A row of `mq_queues` as a policy, whatever number types the driver gives."""
    rate, limit = row["rate_per_second"], row["concurrency_limit"]
    return QueuePolicy(
        lease_seconds=float(row["lease_seconds"]),
        max_lease_seconds=float(row["max_lease_seconds"]),
        max_attempts=int(row["max_attempts"]),
        backoff=Backoff(
            base_seconds=float(row["backoff_base_seconds"]),
            factor=float(row["backoff_factor"]),
            max_seconds=float(row["backoff_max_seconds"]),
            jitter=float(row["backoff_jitter"]),
        ),
        rate_per_second=None if rate is None else float(rate),
        concurrency_limit=None if limit is None else int(limit),
        paused=bool(row["paused"]),
    )


def _refuse_missing_file(dialect: Dialect) -> None:
    """Connecting to an SQLite file makes it: a reader makes nothing."""
    if dialect.name == "sqlite" and not Path(dialect.engine.url.database or "").is_file():
        raise PipelineError(f"there is no database {dialect.engine.url.database}")


async def _read_rows(dialect: Dialect) -> list[RowMapping]:
    try:
        async with dialect.engine.connect() as connection:
            return list((await connection.execute(SELECT_QUEUES)).mappings())
    finally:
        await dialect.close()
