"""What the archive is asked for in the tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.pipeline.archive.archive import ArchiveRequest

OLDER_THAN = timedelta(days=7)
# Microseconds that would not survive milliseconds or floating point.
OLD = datetime.now(UTC).replace(microsecond=123457) - timedelta(days=30)
RECENT = OLD + timedelta(days=29)


def make_request(lakes: Path, url: str, *, dead_letters: bool = True, batch_rows: int = 200) -> ArchiveRequest:
    """Small batches to a lake of the database's own."""
    lake = lakes / url.partition(":")[0]
    return ArchiveRequest(url, str(lake), OLDER_THAN, dead_letters, batch_rows)
