"""What the layout promises to readers that know nothing of Spark: manifests name plain files."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from app.pipeline.lake import commit_batch, create_lake
from app.pipeline.tables import HISTORY
from tests.pipeline.lake.rows import make_frame, make_row


def test_pandas_reads_what_the_manifests_list(spark: SparkSession, tmp_path: Path) -> None:
    lake = create_lake(spark, str(tmp_path))
    for numbers in (range(3), range(3, 6)):
        commit_batch(lake, {HISTORY: make_frame(spark, HISTORY, numbers)})
    manifests = [json.loads(path.read_bytes()) for path in sorted((tmp_path / "_manifests").glob("*.json"))]
    files = [tmp_path / file["path"] for manifest in manifests for file in manifest["tables"]["history"]["files"]]
    frame = pd.concat([pd.read_parquet(file, partitioning=None) for file in files]).sort_values("id")
    assert list(frame.columns) == [column.name for column in HISTORY.columns]
    assert frame["finished_at"].dt.tz is not None
    assert [row["finished_at"] for row in frame.to_dict("records")] == [
        make_row(HISTORY, number)["finished_at"] for number in range(6)
    ]
    assert frame["payload"].tolist() == [make_row(HISTORY, number)["payload"] for number in range(6)]


def test_arrow_types_are_the_tables_own(spark: SparkSession, tmp_path: Path) -> None:
    commit_batch(create_lake(spark, str(tmp_path)), {HISTORY: make_frame(spark, HISTORY, range(3))})
    file = next(tmp_path.rglob("part-*.parquet"))
    assert pq.read_schema(file).remove_metadata() == HISTORY.arrow_schema
