"""Who a row is, whenever and wherever it is computed again: the key that the service tells repetitions by."""

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

# What fits into a dedupe key of 128 characters beside the job.
MAX_PLAIN_KEY = 80
DIGEST_BYTES = 16
DIGEST_MARK = "#"
# Microseconds too: two rows that are not equal must not have one digest.
AS_JSON = {"ignoreNullFields": "true", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def dedupe_key(job: str, key: str) -> str:
    """The key of a row in a job: as it is where that can be stored, else its digest."""
    if len(key) > MAX_PLAIN_KEY or key.startswith(DIGEST_MARK) or "\x00" in key or not key:
        return f"{job}:{DIGEST_MARK}{_digest(key.encode())}"
    return f"{job}:{key}"


class Occurrences:
    """Identities for the rows of one partition that have no key.

    Equal rows are told apart by a number. In whatever order the partition is computed again, the same identities come
    out of it: which of two equal rows is the first makes no difference.
    """

    def __init__(self, partition: int) -> None:
        self._partition = partition
        # How often each row came that came more than once, beside all that came.
        self._seen: set[str] = set()
        self._repeated: Counter[str] = Counter()

    def identify_many(self, contents: Iterable[bytes]) -> list[str]:
        """The identities of rows that come next, in their order."""
        digests = [_digest(content) for content in contents]
        fresh = set(digests)
        if len(fresh) < len(digests) or not self._seen.isdisjoint(fresh):
            return [self._identify(digest) for digest in digests]
        self._seen |= fresh
        return [f"{self._partition}.{digest}.1" for digest in digests]

    def _identify(self, digest: str) -> str:
        if digest in self._seen:
            self._repeated[digest] += 1
        self._seen.add(digest)
        return f"{self._partition}.{digest}.{self._repeated[digest] + 1}"


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def with_digest(rows: DataFrame, name: str) -> DataFrame:
    """Adds a column that is the same for equal rows, and for no others."""
    # As JSON a value cannot run over into the next column, and NULL is not the empty text.
    content = F.to_json(F.struct(*rows.columns), AS_JSON)
    return rows.withColumn(name, F.substring(F.sha2(content, 256), 1, 2 * DIGEST_BYTES))


def with_row_keys(rows: DataFrame, name: str, digest: str) -> DataFrame:
    """Adds a key column: the digest, and a number among equal rows; the digest's own column goes.

    The keys are the same however the rows are cut into partitions and ordered, as long as they are the same rows.
    """
    among_equals = Window.partitionBy(digest).orderBy(F.lit(1))
    key = F.concat_ws(".", digest, F.row_number().over(among_equals).cast("string"))
    return rows.withColumn(name, key).drop(digest)
