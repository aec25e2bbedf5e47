"""A lake that is there: what is in it, and reading it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from app.pipeline.errors import PipelineError
from app.pipeline.lake.files import Files, open_files
from app.pipeline.lake.manifests import FORMAT, Manifest, Part, read_document, read_manifest
from app.pipeline.tables import ATTEMPTS, DLQ, HISTORY, Table

MARKER = "_leasemq_lake.json"
MANIFESTS = "_manifests"
# What is kept, and the column that says when each row was finished.
KEPT = {HISTORY.name: "finished_at", ATTEMPTS.name: "finished_at", DLQ.name: "failed_at"}


class Lake:
    """Everything that manifests list, and nothing else."""

    def __init__(self, spark: SparkSession, files: Files, database: str) -> None:
        self.spark = spark
        self.files = files
        # Which database's rows these are.
        self.database = database
        # A manifest never changes: each is read once.
        self._known: dict[str, Manifest] = {}

    def read(self, table: Table) -> DataFrame:
        """All rows of a table, each (id, finished_at) once; for dead letters (id, failed_at)."""
        parts = [part for manifest in self.manifests() if (part := manifest.parts.get(table.name))]
        plain, repeated = _told_apart(parts)
        frames = [self.read_files(table, parts) for parts in (plain, repeated) if parts]
        if repeated:
            frames[-1] = frames[-1].dropDuplicates([table.key, KEPT[table.name]])
        return reduce(DataFrame.unionAll, frames) if frames else self.spark.createDataFrame([], table.spark_schema)

    def read_files(self, table: Table, parts: list[Part]) -> DataFrame:
        """The rows of some parts as they are."""
        paths = [f"{self.files.root}/{file.path}" for part in parts for file in part.files]
        return self.spark.read.schema(table.spark_schema).parquet(*paths)

    def manifests(self) -> list[Manifest]:
        """All batches of the lake in the order of their names, which is that of their making."""
        return [self._manifest(name) for name in self._manifest_names(".json")]

    def unpruned(self) -> list[Manifest]:
        """Batches that are committed, and whose rows may still be in the database."""
        pruned = set(self._manifest_names(".pruned"))
        return [manifest for manifest in self.manifests() if f"{manifest.batch}.pruned" not in pruned]

    def commit(self, manifest: Manifest) -> None:
        """From here on the batch is in the lake; its files must be durable by now."""
        if not self.files.put(f"{MANIFESTS}/{manifest.batch}.json", manifest.to_json()):
            raise PipelineError(f"There is a batch {manifest.batch} in the lake already.")

    def mark_pruned(self, batch: str, deleted: int) -> None:
        """The batch's rows are no longer in the database."""
        document = {"format": FORMAT, "pruned_at": datetime.now(UTC).isoformat(), "deleted": deleted}
        self.files.put(f"{MANIFESTS}/{batch}.pruned", json.dumps(document).encode())

    def delete_batch(self, batch: str) -> None:
        """Takes away what was written for a batch that is not committed."""
        for table in KEPT:
            self.files.delete(f"{table}/batch={batch}")

    def delete_uncommitted(self) -> int:
        """Takes away what was written for batches that never came to be, and tells how many; nobody may be writing."""
        committed = {name.removesuffix(".json") for name in self._manifest_names(".json")}
        left = set(self._written_batches()) - committed
        for batch in left:
            self.delete_batch(batch)
        return len(left)

    def _written_batches(self) -> Iterator[str]:
        for table in KEPT:
            for name in self.files.names(table):
                if name.startswith("batch="):
                    yield name.removeprefix("batch=")

    def _manifest_names(self, suffix: str) -> list[str]:
        return [name for name in self.files.names(MANIFESTS) if name.endswith(suffix) and not name.startswith(".")]

    def _manifest(self, name: str) -> Manifest:
        if name not in self._known:
            self._known[name] = self._read_manifest(name)
        return self._known[name]

    def _read_manifest(self, name: str) -> Manifest:
        path = f"{MANIFESTS}/{name}"
        content = self.files.read(path)
        if content is None:
            raise PipelineError(f"{path} has gone from the lake while it was read.")
        return read_manifest(f"{self.files.root}/{path}", content)


def open_lake(spark: SparkSession, url: str) -> Lake:
    """The lake at a local path or the URL of a Hadoop filesystem; raises PipelineError if there is none."""
    files = open_files(spark, url)
    content = files.read(MARKER)
    if content is None:
        raise PipelineError(f"{url} is not a lake: it has no {MARKER}. `leasemq pipeline archive` makes one.")
    document = read_document(f"{files.root}/{MARKER}", content)
    return Lake(spark, files, str(document.get("database", "")))


def create_lake(spark: SparkSession, url: str, database: str = "") -> Lake:
    """Makes a lake for a database's rows where there is nothing yet, or opens the one that is there."""
    lake = find_lake(spark, url, database)
    if lake is None:
        marker = {"format": FORMAT, "database": database, "created_at": datetime.now(UTC).isoformat()}
        # If somebody else is faster, the lake is theirs.
        open_files(spark, url).put(MARKER, json.dumps(marker, indent=1).encode())
        lake = find_lake(spark, url, database)
    assert lake is not None
    return lake


def find_lake(spark: SparkSession, url: str, database: str) -> Lake | None:
    """The lake of a database; None where one can be made; PipelineError for what is neither."""
    files = open_files(spark, url)
    if files.read(MARKER) is None:
        if files.names(""):
            raise PipelineError(f"{url} is not a lake, and it is not empty: give a new or an empty directory.")
        return None
    lake = open_lake(spark, url)
    if lake.database != database:
        raise PipelineError(
            f"The lake {url} is that of another database ({lake.database}). If it is this one, which has moved,"
            f' write "{database}" as its "database" in {MARKER}.'
        )
    return lake


def _told_apart(parts: list[Part]) -> tuple[list[Part], list[Part]]:
    """Parts whose rows are nowhere else, and those that share some: only these need looking for repeated rows."""
    repeating = [part for part in parts if part.repeated]
    shared = [part for part in parts if any(part.overlaps(other) for other in repeating)]
    return [part for part in parts if part not in shared], shared
