"""The advice as a whole: from the tables to the sentences, and from what the queue itself records."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from app.pipeline.advice.advise import ASSUMED, Recorded, advise
from app.pipeline.advice.arrivals import demands_of
from app.pipeline.advice.findings import Confidence, LogSeen, QueueAdvice, QueueKey, QueuePolicy, Target
from app.pipeline.advice.frames import attempt_rows, task_rows
from app.pipeline.tables import TABLES, Kind, Table
from app.repository.factory import connect_dialect, open_repository
from app.repository.schema import migrate
from tests.conformance import steps
from tests.pipeline.advice.records import (
    Fields,
    at,
    attempt,
    attempts_frame,
    dead,
    dead_frame,
    done,
    history_frame,
    live_frame,
    lost,
    waiting,
)

TARGET = Target(wait_seconds=5.0, share=0.95)
TASKS = 1_500
POLICIES = {QueueKey("default", "mail"): QueuePolicy(lease_seconds=10.0)}


def mail() -> tuple[list[Fields], list[Fields]]:
    """Two and a half Erlang of mail: a tenth of it fails once, and some runs lose their lease of ten seconds."""
    rng = np.random.default_rng(4)
    dues, runs = np.cumsum(rng.exponential(1.0, TASKS)).tolist(), rng.exponential(2.5, TASKS).tolist()
    history, attempts = [], []
    for number, (due, run) in enumerate(zip(dues, runs, strict=True)):
        task_id = f"m{number}"
        if run > 10:
            attempts += [lost(task_id, due, due + 10), attempt(task_id, due + 10, due + 14, attempt_no=2)]
            history.append(done(task_id, due, due, due + 14, attempts=2))
        elif number % 10 == 0:
            retried = due + run + 8
            attempts += [attempt(task_id, due, due + run, success=False, reason="boom")]
            attempts += [attempt(task_id, retried, retried + 1, attempt_no=2)]
            changed = {"attempts": 2, "created_at": at(due), "available_at": at(retried)}
            history.append(done(task_id, due, due, retried + 1) | changed)
        else:
            attempts.append(attempt(task_id, due, due + run))
            history.append(done(task_id, due, due, due + run))
    return history, attempts


@pytest.fixture(scope="module")
def advice(spark: SparkSession) -> dict[str, QueueAdvice]:
    history, attempts = mail()
    history += [done(f"s{number}", number, number, number + 1, queue="silent") for number in range(200)]
    history += [done("one", 0, 0, 1, queue="one")]
    attempts += [attempt("one", 0, 1, queue="one")]
    failed = [dead(f"f{number}", number, number + 5, queue="failing", attempts=5) for number in range(400)]
    live = [waiting(f"w{number}", 1000, queue="mail") for number in range(100)]
    live += [waiting(f"l{number}", 90_000, queue="later", status="scheduled") for number in range(5)]
    recorded = Recorded(
        history_frame(spark, history),
        attempts_frame(spark, attempts),
        dead_frame(spark, failed),
        live_frame(spark, live),
    )
    given = advise(recorded, POLICIES, TARGET, at(1800))
    assert [item.key.queue for item in given] == ["failing", "later", "mail", "one", "silent"]
    return {item.key.queue: item for item in given}


def test_a_queue_with_much_to_tell(advice: dict[str, QueueAdvice]) -> None:
    mail = advice["mail"]
    assert (mail.policy_is_known, mail.log) == (True, LogSeen.ALL)
    assert mail.lease.lease_seconds is not None
    assert mail.lease.lease_seconds > 10.0
    assert "a lease of 10 s lost" in mail.lease.sentence
    assert ASSUMED not in mail.lease.caveats
    assert mail.attempts.max_attempts == 5
    assert mail.attempts.rescues[1].share == 1.0
    assert mail.backoff.sentence == "Second attempts came 8 s to 16 s after the failure: other delays were not seen."
    assert mail.workers.workers is not None
    assert 3 <= mail.workers.workers <= 25
    # The hundred that wait now came at once: they are played through with times of others.
    assert any("100 of" in caveat for caveat in mail.workers.caveats)
    assert mail.drain.backlog == 100
    assert mail.drain.likely_seconds is not None


def test_a_queue_without_a_log(advice: dict[str, QueueAdvice]) -> None:
    silent = advice["silent"]
    assert (silent.policy_is_known, silent.log) == (False, LogSeen.OFF)
    assert silent.lease.lease_seconds == 5.0
    assert ASSUMED in silent.lease.caveats
    assert silent.attempts.confidence is Confidence.NONE
    assert silent.backoff.sentence.startswith("There is no log of attempts")
    assert silent.workers.workers == 1
    assert silent.drain.sentence == "Nothing waits now."


def test_a_queue_where_all_fails(advice: dict[str, QueueAdvice]) -> None:
    failing = advice["failing"]
    assert failing.log is LogSeen.UNKNOWN
    assert failing.lease.confidence is Confidence.NONE
    assert failing.attempts.sentence.startswith("No attempt at 400 tasks succeeded")
    assert failing.workers.sentence == "No run times are recorded: nothing can be simulated."


@pytest.mark.parametrize("queue", ["one", "later"])
def test_a_queue_with_nothing_to_tell_gets_no_advice(advice: dict[str, QueueAdvice], queue: str) -> None:
    parts = advice[queue].lease, advice[queue].attempts, advice[queue].backoff, advice[queue].workers
    assert {part.confidence for part in parts} == {Confidence.NONE}
    assert advice[queue].drain.backlog == 0


def test_tables_with_nothing_in_them_and_no_live_database(spark: SparkSession) -> None:
    empty = Recorded(history_frame(spark, []), attempts_frame(spark, []), dead_frame(spark, []))
    assert advise(empty, {}, TARGET, at(0)) == []


async def record_some(database: Path) -> None:
    """Tasks that are done, lose a lease, are nacked, and wait, as the queue itself writes them down."""
    dialect = connect_dialect(f"sqlite:///{database}")
    await migrate(dialect)
    store = steps.Store(open_repository(dialect, timeout_seconds=30.0), "default")
    await store.enqueue("plain", steps.at(0))
    await store.ack(await store.reserve_one(steps.at(4)), steps.at(6))
    await store.lease("lost", steps.at(10))
    await store.ack(await store.reserve_one(steps.at(50)), steps.at(55))
    nacked = await store.lease("nacked", steps.at(100))
    await store.nack(nacked, steps.at(103), delay_seconds=20)
    await store.ack(await store.reserve_one(steps.at(130)), steps.at(131))
    await store.bury("dead", steps.at(200))
    await store.enqueue("waits", steps.at(300))
    await dialect.close()


def rows_of(database: Path, table: Table) -> list[Fields]:
    with sqlite3.connect(database) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(f"SELECT * FROM {table.relation} WHERE {table.condition or '1 = 1'}").fetchall()
    connection.close()
    instants = {column.name for column in table.columns if column.kind is Kind.INSTANT}
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    def value(name: str, stored: object) -> object:
        return epoch + timedelta(microseconds=stored) if name in instants and isinstance(stored, int) else stored

    return [{column.name: value(column.name, row[column.name]) for column in table.columns} for row in rows]


async def test_what_the_queue_writes_down_is_read_as_it_happened(spark: SparkSession, tmp_path: Path) -> None:
    await record_some(tmp_path / "mq.db")
    rows = {name: rows_of(tmp_path / "mq.db", table) for name, table in TABLES.items()}
    for row in (row for part in rows.values() for row in part):
        row |= {name: bool(row[name]) for name in ("success", "payload_is_json") if name in row}
    tasks = task_rows(
        history_frame(spark, rows["history"]), dead_frame(spark, rows["dlq"]), live_frame(spark, rows["tasks"])
    )
    attempts = attempt_rows(attempts_frame(spark, rows["attempts"])).cache()
    start = steps.T0.timestamp()
    seen = {(row.task_id, row.attempt_no): (row.outcome, row.run) for row in attempts.collect()}
    assert seen == {
        ("plain", 1): ("success", 2.0),
        ("lost", 1): ("lost", steps.LEASE_SECONDS),
        ("lost", 2): ("success", 5.0),
        ("nacked", 1): ("failure", 3.0),
        ("nacked", 2): ("success", 1.0),
        ("dead", 1): ("failure", 0.0),
    }
    asked = demands_of(tasks, attempts).orderBy("asked").collect()
    attempts.unpersist()
    assert [(row.asked - start, row.run, row.first) for row in asked] == [
        (0.0, 2.0, True),
        (10.0, 30.0, True),
        (50.0, 5.0, False),
        (100.0, 3.0, True),
        (130.0, 1.0, False),
        (200.0, 0.0, True),
        (300.0, None, True),
    ]
