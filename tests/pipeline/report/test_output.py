"""A report on disk: whole or not there, and never over what is somebody else's."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from app.pipeline.errors import PipelineError
from app.pipeline.report.output import MARKER, PAGE, refuse_foreign, write_report

TABLE = pa.table({"queue": ["a", 'ü,\n"b"'], "tasks": [1, 2]})
# Writes a report, and is killed when a function is called for the nth time.
DIES = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
import pyarrow.csv
from app.pipeline.report import output

out, owner, name, nth = sys.argv[1:]
owner = {"Path": Path, "csv": pa.csv}[owner]
real, calls = getattr(owner, name), []

def counted(*arguments, **options):
    calls.append(name)
    if len(calls) == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)

setattr(owner, name, counted)
output.write_report(Path(out), "new", {"a": pa.table({"n": [2]}), "b": pa.table({"n": [3]})})
"""
# Writes a report many times, each whole page of one number.
WRITES = """
import sys
from pathlib import Path
import pyarrow as pa
from app.pipeline.report import output

for number in range(20):
    output.refuse_foreign(Path(sys.argv[1]))
    output.write_report(Path(sys.argv[1]), sys.argv[2] * 300_000, {"a": pa.table({"n": [int(sys.argv[2])]})})
"""
# Before the tables, between two of them, before the page, before the mark, before and between the renames.
DEATHS = ("Path mkdir 2", "csv write_csv 2", "Path write_text 1", "Path write_text 2", "Path rename 1", "Path rename 2")


def write(out: Path, page: str = "page") -> None:
    write_report(out, page, {"t": TABLE})


def contents(directory: Path) -> dict[str, bytes]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {file.relative_to(directory).as_posix(): file.read_bytes() for file in files}


def test_tables_are_parquet_and_csv(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "out")
    tables = tmp_path / "deep" / "out" / "tables"
    assert pa.parquet.read_table(tables / "t.parquet") == TABLE
    options = pa.csv.ParseOptions(newlines_in_values=True)
    assert pa.csv.read_csv(tables / "t.csv", parse_options=options) == TABLE


def test_a_report_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    write_report(tmp_path / "out", "old", {"gone": TABLE})
    write(tmp_path / "out", "new")
    assert contents(tmp_path / "out").keys() == {MARKER, PAGE, "tables/t.csv", "tables/t.parquet"}
    assert (tmp_path / "out" / PAGE).read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_directory_is_free(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out")
    assert (tmp_path / "out" / PAGE).is_file()


@pytest.mark.parametrize("ours", [False, True])
def test_foreign_files_are_refused_and_stay(tmp_path: Path, ours: bool) -> None:
    out = tmp_path / "out"
    if ours:
        write(out)
    (out / "photos").mkdir(parents=True)
    (out / "photos" / "cat.jpg").write_bytes(b"cat")
    before = contents(out)
    with pytest.raises(PipelineError, match=r"photos/cat\.jpg"):
        refuse_foreign(out)
    with pytest.raises(PipelineError, match=r"photos/cat\.jpg"):
        write(out, "new")
    assert contents(out) == before


def test_a_mark_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    write(tmp_path / "out")
    (tmp_path / "out" / MARKER).write_text("[]")
    with pytest.raises(PipelineError):
        write(tmp_path / "out")


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(PipelineError, match="is a file"):
        write(tmp_path / "out")


def test_a_place_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PipelineError, match="cannot be written"):
        write(tmp_path / "file" / "out")


@pytest.mark.parametrize("death", DEATHS)
def test_whoever_dies_on_the_way_leaves_the_old_report_whole(tmp_path: Path, death: str) -> None:
    out = tmp_path / "out"
    write(out, "old")
    before = contents(out)
    died = subprocess.run([sys.executable, "-c", DIES, str(out), *death.split()], check=False)
    assert died.returncode == -signal.SIGKILL
    refuse_foreign(out)
    assert contents(out) == before
    write(out, "new")
    assert (out / PAGE).read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_reports_that_are_written_at_once_are_each_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    writers = [subprocess.Popen([sys.executable, "-c", WRITES, str(out), number]) for number in "123"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        with contextlib.suppress(FileNotFoundError):
            seen.add((out / PAGE).read_text())
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert seen <= {number * 300_000 for number in "123"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    [number] = pa.parquet.read_table(out / "tables" / "a.parquet").column("n").to_pylist()
    assert (out / PAGE).read_text() == str(number) * 300_000
