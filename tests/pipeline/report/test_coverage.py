"""What the attempt log holds, told from the data alone."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.pipeline.report.coverage import Logged, attempt_log_coverage
from tests.pipeline.report.making import attempts, finished, rows_of

DONE, RETRIED, GOOD, BAD = {"attempts": 1}, {"attempts": 2}, {"success": True}, {"success": False}
CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]], Logged]] = {
    "everything": ([DONE, RETRIED], [], [GOOD, BAD, GOOD], Logged.ALL),
    "one-row-lost": ([DONE] * 200, [], [GOOD] * 199, Logged.ALL),
    "switched": ([DONE] * 4, [], [GOOD] * 2, Logged.PART),
    "failures": ([DONE, RETRIED], [], [BAD], Logged.FAILURES),
    "off": ([DONE, RETRIED], [], [], Logged.OFF),
    "off-and-only-dead": ([], [{"attempts": 5}], [], Logged.OFF),
    "only-dead": ([], [{"attempts": 1}], [BAD], Logged.ALL),
    "nothing-failed": ([DONE], [], [], Logged.NO_SUCCESS),
    "never-started": ([{"status": "expired", "attempts": 0}], [], [], Logged.NOTHING),
    "attempts-alone": ([], [], [BAD], Logged.ALL),
}


@pytest.fixture(scope="module")
def coverage(spark: SparkSession) -> dict[str, dict[str, Any]]:
    done = [{"queue": name, **row} for name, case in CASES.items() for row in case[0]]
    dead = [{"queue": name, **row} for name, case in CASES.items() for row in case[1]]
    logged = [{"queue": name, **row} for name, case in CASES.items() for row in case[2]]
    found = attempt_log_coverage(finished(spark, done, dead), attempts(spark, logged))
    return {row["queue"]: row for row in rows_of(found)}


@pytest.mark.parametrize("name", CASES)
def test_coverage(coverage: dict[str, dict[str, Any]], name: str) -> None:
    assert coverage[name]["logged"] == CASES[name][3]


def test_the_share_is_told(coverage: dict[str, dict[str, Any]]) -> None:
    assert coverage["switched"]["logged_share"] == 0.5
    assert coverage["off-and-only-dead"]["logged_share"] is None
