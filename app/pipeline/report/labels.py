"""Few names for many: the busiest queues, types and tenants keep theirs, the rest is one group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

DIMENSIONS = ("queue", "type", "tenant")
TOP = 20
# No name of a queue, a type or a tenant has brackets.
OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class Labels:
    """The names that are kept of a dimension, busiest first, and how many there are in all."""

    kept: Sequence[str]
    total: int

    @property
    def cut(self) -> int:
        return self.total - len(self.kept)


def find_labels(tasks: DataFrame, attempts: DataFrame, top: int = TOP) -> dict[str, Labels]:
    """The busiest names of each dimension, by how often they end something."""
    found = {dimension: Labels([], 0) for dimension in DIMENSIONS}
    for row in busiest_names(tasks, attempts, top).collect():
        kept = found[row["dimension"]].kept
        found[row["dimension"]] = Labels([*kept, row["name"]], row["total"])
    return found


def busiest_names(tasks: DataFrame, attempts: DataFrame, top: int) -> DataFrame:
    """The first `top` names of each dimension, busiest first, each with how many names there are in all."""
    ended = tasks.select(*DIMENSIONS).unionByName(attempts.select(*DIMENSIONS))
    names = F.explode(F.create_map(*(part for name in DIMENSIONS for part in (F.lit(name), F.col(name)))))
    counts = (
        ended.select(names.alias("dimension", "name")).groupBy("dimension", "name").agg(F.count("*").alias("ended"))
    )
    of_dimension = Window.partitionBy("dimension")
    ranked = counts.select(
        "*",
        F.row_number().over(of_dimension.orderBy(F.desc("ended"), "name")).alias("rank"),
        F.count("*").over(of_dimension).alias("total"),
    )
    return ranked.where(F.col("rank") <= top).orderBy("dimension", "rank")


def busiest_queues(tasks: DataFrame, attempts: DataFrame, top: int = TOP) -> DataFrame:
    """The busiest queues, those of one name in two tenants told apart, and what ended in them."""
    ended = tasks.select("tenant", "queue", F.lit(1).alias("task")).unionByName(
        attempts.select("tenant", "queue", F.lit(0).alias("task"))
    )
    counts = ended.groupBy("tenant", "queue").agg(
        F.sum("task").alias("tasks"), F.count_if(F.col("task") == 0).alias("attempts")
    )
    return counts.orderBy(F.desc(F.col("tasks") + F.col("attempts")), "tenant", "queue").limit(top)


def labelled(frame: DataFrame, labels: Mapping[str, Labels]) -> DataFrame:
    """The same rows; names that are not kept become one."""
    kept = {
        dimension: F.when(F.col(dimension).isin(list(found.kept)), F.col(dimension)).otherwise(F.lit(OTHERS))
        for dimension, found in labels.items()
        if found.cut
    }
    return frame.withColumns(kept)
