"""Files of a lake, on this machine's disk and through Hadoop's own filesystem for it."""

import shutil
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from app.pipeline.lake import commit_batch
from app.pipeline.lake.files import Files, Found, HadoopFiles, LocalFiles, open_files
from app.pipeline.lake.lake import Lake
from app.pipeline.tables import HISTORY
from tests.pipeline.lake.rows import make_frame

WAYS = ["local", "rename", "put"]


@pytest.fixture(params=WAYS)
def files(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Files:
    """This machine's own calls; Hadoop's with a rename, as for HDFS; Hadoop's with one put, as for an object store."""
    if request.param == "local":
        return LocalFiles(tmp_path)
    return HadoopFiles(spark, f"file://{tmp_path}", atomic_rename=request.param == "rename")


def test_a_file_is_put_once(files: Files, tmp_path: Path) -> None:
    assert files.put("a/b.json", b"\x00first\xff")
    assert not files.put("a/b.json", b"second")
    assert files.read("a/b.json") == b"\x00first\xff"
    assert files.names("a") == ["b.json"]


def test_what_is_not_there(files: Files) -> None:
    assert files.read("nothing") is None
    assert files.names("nothing") == []
    assert files.walk("nothing") == []
    files.delete("nothing")


def test_hidden_files_are_not_found(files: Files) -> None:
    for path in ("a/date=1/x.parquet", "a/date=2/y.parquet", "a/_temporary/z.parquet", "a/.hidden"):
        files.put(path, b"12")
    assert files.walk("a") == [Found("a/date=1/x.parquet", 2), Found("a/date=2/y.parquet", 2)]
    files.sync(["a/date=1/x.parquet"])
    files.delete("a")
    assert files.walk("a") == []


def test_a_directory_is_deleted_while_a_dying_writer_is_at_work_in_it(tmp_path: Path) -> None:
    def write_and_tidy_up() -> None:
        for number in range(300):
            task = tmp_path / f"batch/_temporary/{number % 7}"
            with suppress(FileNotFoundError):
                task.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(task, ignore_errors=True)

    files = LocalFiles(tmp_path)
    files.put("batch/part.parquet", b"1")
    writer = Thread(target=write_and_tidy_up)
    writer.start()
    while writer.is_alive():
        files.delete("batch")
    files.delete("batch")
    assert files.names("") == []


def test_a_lake_on_any_files(spark: SparkSession, files: Files) -> None:
    lake = Lake(spark, files, "")
    manifest = commit_batch(lake, {HISTORY: make_frame(spark, HISTORY, range(3))})
    assert manifest is not None
    assert [found.batch for found in lake.unpruned()] == [manifest.batch]
    lake.mark_pruned(manifest.batch, 3)
    assert lake.unpruned() == []
    assert lake.read(HISTORY).count() == 3


@pytest.mark.parametrize("url", ["{}/x", "file:{}/x", "file://{}/x", "file://localhost{}/x"])
def test_local_places(spark: SparkSession, tmp_path: Path, url: str) -> None:
    assert open_files(spark, url.format(tmp_path)).root == f"file://{tmp_path}/x"
