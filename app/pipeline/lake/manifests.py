"""What a batch consists of, as it is written beside the data."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from app.pipeline.errors import PipelineError
from app.pipeline.lake.files import Found

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Part:
    """The rows that a batch has of one table.

    `digest` is the sum of the rows' hashes, `low` and `high` are their least and greatest id.
    """

    rows: int
    digest: str
    low: int
    high: int
    files: tuple[Found, ...]
    # How many of the rows an earlier batch has too: only then readers need to look for repeated ones.
    repeated: int = 0

    def overlaps(self, other: "Part") -> bool:
        """Whether the two may have rows in common."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class Manifest:
    """A batch that is in the lake."""

    batch: str
    created_at: datetime
    # What of each table, by the table's name.
    parts: dict[str, Part]
    # Everything was older than this; None if nobody asked.
    cut_off: datetime | None = None

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts.values())

    def to_json(self) -> bytes:
        document = {
            "format": FORMAT,
            "batch": self.batch,
            "created_at": self.created_at.astimezone(UTC).isoformat(),
            "cut_off": self.cut_off and self.cut_off.astimezone(UTC).isoformat(),
            "tables": {name: asdict(part) for name, part in self.parts.items()},
        }
        return json.dumps(document, indent=1).encode()


def read_manifest(path: str, content: bytes) -> Manifest:
    """A manifest from its JSON; raises PipelineError if it is none that this version can read."""
    document = read_document(path, content)
    try:
        cut_off = document["cut_off"]
        return Manifest(
            batch=str(document["batch"]),
            created_at=datetime.fromisoformat(document["created_at"]),
            cut_off=None if cut_off is None else datetime.fromisoformat(cut_off),
            parts={str(name): _part_of(part) for name, part in document["tables"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PipelineError(f"{path} is not a manifest of a lake.") from error


def read_document(path: str, content: bytes) -> dict[str, Any]:
    """A JSON object of this version's format."""
    try:
        document = json.loads(content)
        version = document["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{path} cannot be read: it is not what a lake keeps there.") from error
    if version != FORMAT:
        raise PipelineError(f"{path} is of format {version}; this version of LeaseMQ reads format {FORMAT}.")
    return dict(document)


def _part_of(document: dict[str, Any]) -> Part:
    files = tuple(Found(str(file["path"]), int(file["bytes"])) for file in document["files"])
    numbers = {name: int(document[name]) for name in ("rows", "low", "high", "repeated")}
    return Part(digest=str(document["digest"]), files=files, **numbers)
