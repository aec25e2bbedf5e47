"""A report on disk: written beside the old one, and put in its place when it is whole."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from app.pipeline.errors import PipelineError
from app.pipeline.report.lock import locked

MARKER = "_leasemq_report.json"
PAGE = "index.html"
TABLES = "tables"
FORMAT = 1


def refuse_foreign(out: Path) -> None:
    """Raises PipelineError unless the place is free or holds a report of ours and nothing else."""
    out = out.absolute()
    if not out.parent.is_dir():
        return
    with _told(out), locked(_lock(out)):
        _bring_back(out)
        _refuse_foreign(out)


def write_report(out: Path, page: str, tables: Mapping[str, pa.Table]) -> None:
    """Writes page and tables, and takes the place of an older report; until then that one is as it was.

    Two that are written at once come one after the other.
    """
    out = out.absolute()
    new = out.with_name(f".{out.name}.new")
    with _told(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with locked(_lock(out)):
            _bring_back(out)
            _refuse_foreign(out)
            try:
                # What somebody left who died while writing.
                shutil.rmtree(new, ignore_errors=True)
                _write(new, page, tables)
                _swap(new, out)
            finally:
                shutil.rmtree(new, ignore_errors=True)


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PipelineError(f"The report cannot be written to {out}: {error.strerror}.") from error


def _refuse_foreign(out: Path) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise PipelineError(f"{out} is a file: give a directory for the report.")
    if foreign := sorted(_files(out) - _own_files(out)):
        raise PipelineError(f"{out} holds files that are not a report's, such as {foreign[0]}: give another directory.")


def _write(directory: Path, page: str, tables: Mapping[str, pa.Table]) -> None:
    (directory / TABLES).mkdir(parents=True)
    for name, table in tables.items():
        pa.parquet.write_table(table, directory / TABLES / f"{name}.parquet", compression="zstd")
        pa.csv.write_csv(table, directory / TABLES / f"{name}.csv")
    (directory / PAGE).write_text(page, encoding="utf-8")
    marker = {"format": FORMAT, "made_at": datetime.now(UTC).isoformat(), "files": sorted(_files(directory))}
    (directory / MARKER).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")


def _swap(new: Path, out: Path) -> None:
    """Whoever dies between the two renames leaves the old report beside: the next run brings it back."""
    old = _old(out)
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    new.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def _bring_back(out: Path) -> None:
    if not out.exists() and _old(out).is_dir():
        _old(out).rename(out)


def _old(out: Path) -> Path:
    return out.with_name(f".{out.name}.old")


def _lock(out: Path) -> Path:
    return out.with_name(f".{out.name}.lock")


def _files(directory: Path) -> set[str]:
    return {file.relative_to(directory).as_posix() for file in _walk(directory)}


def _walk(directory: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        yield from (Path(parent, name) for name in names)


def _own_files(out: Path) -> set[str]:
    """What the report's own mark says belongs to it; nothing without one."""
    try:
        marker = json.loads((out / MARKER).read_text(encoding="utf-8"))
        return {MARKER, *marker["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
