"""Who a row is does not depend on when, where and in which order it is computed."""

import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app.pipeline.sink.identity import Occurrences, dedupe_key, with_digest, with_row_keys

ROWS = [b"a", b"b", b"a", b"c", b"a"]


def identities(rows: list[bytes], partition: int = 0) -> list[str]:
    return sorted(Occurrences(partition).identify_many(rows))


def test_equal_rows_are_told_apart_in_whatever_order() -> None:
    shuffled = ROWS.copy()
    random.Random(1).shuffle(shuffled)
    assert len(set(identities(ROWS))) == len(ROWS)
    assert identities(shuffled) == identities(ROWS)


def test_equal_rows_of_two_partitions_are_told_apart() -> None:
    assert not set(identities(ROWS, 0)) & set(identities(ROWS, 1))


@pytest.mark.parametrize("key", ["", "k" * 81, "#beef", "a\x00b"])
def test_a_key_that_cannot_be_stored_is_a_digest(key: str) -> None:
    assert dedupe_key("job", key).startswith("job:#")
    assert len(dedupe_key("j" * 40, key)) <= 128
    assert dedupe_key("job", key) != dedupe_key("job", f"{key}.")


def test_a_key_is_kept_as_it_is() -> None:
    assert dedupe_key("job", "order:7 ü") == "job:order:7 ü"


def keyed(rows: DataFrame) -> set[tuple[int, str]]:
    found = with_row_keys(with_digest(rows, "digest"), "key", "digest").collect()
    return {(row["a"], row["key"]) for row in found}


def test_keys_of_a_frame_are_the_same_in_other_partitions_and_orders(spark: SparkSession) -> None:
    rows = spark.range(60).select((F.col("id") % 20).alias("a"), F.lit("text").alias("b"))
    first = keyed(rows.repartition(3))
    assert len(first) == 60
    assert keyed(rows.orderBy(F.desc("a")).coalesce(1)) == first


def test_rows_that_differ_in_little_have_digests_of_their_own(spark: SparkSession) -> None:
    rows = spark.sql(
        """SELECT * FROM VALUES ('', NULL, TIMESTAMP '2026-01-01 00:00:00.000001'),
        (NULL, '', TIMESTAMP '2026-01-01 00:00:00.000001'), ('', NULL, TIMESTAMP '2026-01-01 00:00:00.000002'),
        ('a', 'b', NULL), ('ab', NULL, NULL), (NULL, 'ab', NULL), ('a","b":"b', NULL, NULL) AS t(a, b, c)"""
    )
    assert with_digest(rows, "digest").select("digest").distinct().count() == 7
