"""The lake: what is committed can be read, exactly as it was; everything else is not there."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.pipeline.errors import PipelineError, PipelineStopped
from app.pipeline.lake import commit_batch, create_lake, open_lake
from app.pipeline.lake.batches import prepare_batch
from app.pipeline.lake.lake import MARKER
from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, Table
from tests.pipeline.lake.rows import make_frame, make_row


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("table", [HISTORY, ATTEMPTS, DLQ], ids=lambda table: table.name)
def test_rows_come_back_as_they_were(spark: SparkSession, tmp_path: Path, table: Table, scheme: str) -> None:
    url = f"{scheme}{tmp_path}/a lake"
    commit_batch(create_lake(spark, url), {table: make_frame(spark, table, range(4))})
    read = open_lake(spark, url).read(table)
    assert read.schema == table.spark_schema
    rows = read.orderBy(table.key).toArrow().to_pylist()
    assert rows == [make_row(table, number) for number in range(4)]


def test_a_batch_of_several_tables(spark: SparkSession, tmp_path: Path) -> None:
    lake = create_lake(spark, str(tmp_path))
    frames = {HISTORY: make_frame(spark, HISTORY, range(3)), ATTEMPTS: make_frame(spark, ATTEMPTS, range(5))}
    manifest = commit_batch(lake, frames)
    assert manifest is not None
    assert {name: part.rows for name, part in manifest.parts.items()} == {"history": 3, "attempts": 5}
    assert (lake.read(HISTORY).count(), lake.read(ATTEMPTS).count(), lake.read(DLQ).count()) == (3, 5, 0)


def test_rows_are_filed_by_their_day(spark: SparkSession, tmp_path: Path) -> None:
    manifest = commit_batch(create_lake(spark, str(tmp_path)), {HISTORY: make_frame(spark, HISTORY, range(4))})
    assert manifest is not None
    days = {file.path.split("/")[2] for file in manifest.parts["history"].files}
    assert days == {"date=2026-03-01", "date=2026-03-02"}


def test_files_that_no_manifest_lists_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    lake = create_lake(spark, str(tmp_path))
    commit_batch(lake, {HISTORY: make_frame(spark, HISTORY, range(3))})
    stray = make_frame(spark, HISTORY, range(3, 6))
    stray.write.parquet(f"{tmp_path}/history/batch=stray/date=2026-03-01")
    [directory] = (tmp_path / "history").glob("batch=2*/date=2026-03-01")
    stray.write.mode("append").parquet(str(directory))
    assert open_lake(spark, str(tmp_path)).read(HISTORY).count() == 3
    assert lake.delete_uncommitted() == 1
    assert not (tmp_path / "history/batch=stray").exists()


def test_a_row_in_two_batches_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    lake = create_lake(spark, str(tmp_path))
    for numbers in (range(4), range(2, 7), range(100, 103)):
        commit_batch(lake, {HISTORY: make_frame(spark, HISTORY, numbers)})
    assert [manifest.parts["history"].repeated for manifest in lake.manifests()] == [0, 2, 0]
    read = sorted(row.id for row in open_lake(spark, str(tmp_path)).read(HISTORY).select("id").collect())
    assert read == [0, 1, 2, 3, 4, 5, 6, 100, 101, 102]


def test_no_rows_make_no_batch(spark: SparkSession, tmp_path: Path) -> None:
    lake = create_lake(spark, str(tmp_path))
    assert commit_batch(lake, {HISTORY: make_frame(spark, HISTORY, range(0))}) is None
    assert lake.manifests() == []
    assert lake.delete_uncommitted() == 0


def test_a_new_lake_is_empty_and_has_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    read = create_lake(spark, str(tmp_path / "new")).read(DLQ)
    assert (read.count(), read.schema) == (0, DLQ.spark_schema)


def test_a_directory_of_somebody_else_is_no_lake(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(PipelineError, match="not empty"):
        create_lake(spark, str(tmp_path))
    with pytest.raises(PipelineError, match="is not a lake"):
        open_lake(spark, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def test_where_no_lake_can_be_made(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").touch()
    for place in (tmp_path / "tasks.csv", tmp_path / "tasks.csv" / "lake", Path("/proc/nolake")):
        with pytest.raises(PipelineError, match=rf"^The lake file://{place} cannot be used: [A-Z].*\.$"):
            create_lake(spark, str(place))


@pytest.mark.parametrize("url", ["nowhere", "nosuch://host/lake", "lake[1]"])
def test_what_is_not_there_is_no_lake(spark: SparkSession, url: str) -> None:
    with pytest.raises(PipelineError):
        open_lake(spark, url)


def test_a_lake_of_another_database_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    create_lake(spark, str(tmp_path), "postgresql 1 mq")
    with pytest.raises(PipelineError, match="another database"):
        create_lake(spark, str(tmp_path), "postgresql 2 mq")


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2}'])
def test_a_lake_of_another_format_is_refused(spark: SparkSession, tmp_path: Path, content: str) -> None:
    (tmp_path / MARKER).write_text(content)
    with pytest.raises(PipelineError, match=MARKER):
        create_lake(spark, str(tmp_path))


def test_a_file_that_changed_is_not_committed(spark: SparkSession, tmp_path: Path) -> None:
    lake = create_lake(spark, str(tmp_path))

    def lose_a_file(step: str) -> None:
        if step == "written":
            next(tmp_path.rglob("part-*.parquet")).unlink()

    with pytest.raises(PipelineStopped, match="do not hold what was written"):
        prepare_batch(lake, {HISTORY: make_frame(spark, HISTORY, range(4))}, on_step=lose_a_file)
    assert lake.manifests() == []
