"""What is known of a job on this machine: which parts of it are finished, so that a later run leaves them out."""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from app.pipeline.errors import PipelineError
from app.pipeline.sink.refused import Tally

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Measure:
    """How many rows there are, and a sum over all they hold: other rows have another sum."""

    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Record:
    """A job with its parts; a part is a set of rows chosen by their identity, the same in every run."""

    job: str
    # A digest of what the job is to do.
    purpose: str
    rows: int
    checksum: str
    parts: int
    done: tuple[int, ...] = ()
    tally: Tally = field(default_factory=Tally)

    def pending(self) -> list[int]:
        return sorted(set(range(self.parts)) - set(self.done))

    def with_done(self, parts: Iterable[int], tally: Tally) -> "Record":
        return replace(self, done=(*self.done, *parts), tally=self.tally + tally)


class Records:
    """The records in a folder, a file for each job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, job: str, purpose: str, measure: Measure, parts: int) -> Record:
        """The record of a job, new or as an earlier run left it; raises `PipelineError` if that had other options."""
        fresh = Record(job, purpose, measure.rows, measure.checksum, parts)
        left = self._read(job)
        if left is None:
            return fresh
        if left.purpose != purpose:
            raise PipelineError(f"job {job} was begun with other options; repeat them, or give the job another id")
        if (left.rows, left.checksum) != (measure.rows, measure.checksum):
            logger.warning("job %s began with other rows: all are sent again, known ones by the same keys", job)
            return fresh
        return left

    def save(self, record: Record) -> None:
        """Durable, and whole at every moment."""
        path = self._path(record.job)
        half = path.with_suffix(".tmp")
        with half.open("w", encoding="utf-8") as file:
            json.dump(asdict(record), file)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)

    def prepare(self) -> None:
        """Raises `PipelineError` if nothing could be kept here."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PipelineError(f"{self._folder} cannot keep records of jobs: {error.strerror}") from error

    def _read(self, job: str) -> Record | None:
        path = self._path(job)
        if not path.exists():
            return None
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            tally = known.pop("tally")
            tally = Tally(**{**tally, "reasons": tuple(tally["reasons"])})
            return Record(**{**known, "done": tuple(known["done"])}, tally=tally)
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise PipelineError(f"{path} is no record of a job; take it away to begin anew") from error

    def _path(self, job: str) -> Path:
        return self._folder / f"{job}.json"


def default_folder() -> Path:
    """Where this user's programs keep what they should remember."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "leasemq" / "jobs"


def purpose_of(options: Mapping[str, object]) -> str:
    """The same for the same options; says nothing of them itself."""
    text = json.dumps(options, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
