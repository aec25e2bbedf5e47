"""What became of the rows: how many were taken, and which were refused and why."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from pyarrow.fs import FileSystem
from pyspark.sql.datasource import WriterCommitMessage

from app.pipeline.errors import PipelineError
from app.pipeline.sink.encoding import RefusedRow, is_json
from app.pipeline.sink.options import SinkOptions

FIRST = 5


@dataclass(frozen=True)
class Tally(WriterCommitMessage):
    """Counts of a partition or of a job; `existed` were there already, from an earlier try or under the same key."""

    rows: int = 0
    existed: int = 0
    refused: int = 0
    # The first reasons, each with the row's key.
    reasons: tuple[str, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.rows + other.rows,
            self.existed + other.existed,
            self.refused + other.refused,
            (self.reasons + other.reasons)[:FIRST],
        )

    def told(self) -> str:
        """The refusals in a line."""
        first = "; ".join(self.reasons)
        return f"{self.refused} of {self.rows} rows were refused, the others are enqueued; the first: {first}"


def total(tallies: Iterable[Tally]) -> Tally:
    return sum(tallies, Tally())


def check_path(path: str) -> None:
    """Raises `PipelineError` if refused rows could not be written there."""
    try:
        filesystem, folder = _open(path)
        filesystem.create_dir(folder, recursive=True)
    except (OSError, ValueError) as error:
        raise PipelineError(f"refused rows cannot be written to {path}: {error}") from error


def write_refused(options: SinkOptions, partition: int, rows: list[RefusedRow]) -> None:
    """One object for a partition, written at once: a partition that is tried again writes the same one again."""
    if options.refused_path is None or not rows:
        return
    filesystem, folder = _open(options.refused_path)
    filesystem.create_dir(folder, recursive=True)
    lines = b"\n".join(map(_line, rows)) + b"\n"
    with filesystem.open_output_stream(f"{folder}/refused-{options.job}-{partition:05}.jsonl") as stream:
        stream.write(lines)


def _line(row: RefusedRow) -> bytes:
    task = msgspec.Raw(row.body) if is_json(row.body) else None
    return msgspec.json.encode({"key": row.key, "reason": row.reason, "task": task})


def _open(path: str) -> tuple[FileSystem, str]:
    filesystem, folder = FileSystem.from_uri(path)
    return filesystem, folder.rstrip("/")
