"""The state machine: every move that the functions decide is in its table, and no other can be made."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from msgspec.structs import replace

from app.domain.errors import LeaseExpired, LeaseMismatch, TaskNotLeased
from app.domain.queue import DEFAULT_QUEUE_SETTINGS
from app.domain.task import LIVE_STATUSES, QueueOfTask, Status, TaskState, TokenFate
from app.domain.transitions import (
    TRANSITIONS,
    Event,
    Move,
    acked,
    cancelled,
    failed,
    is_forgotten,
    nacked,
    overdue,
    refusal,
    released,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

WAITING = TaskState(
    seq=1,
    queue_id=1,
    home=QueueOfTask(ends_at=None, settings=DEFAULT_QUEUE_SETTINGS),
    id="a",
    queue="work",
    type="",
    status=Status.READY,
    attempts=0,
    max_attempts=5,
    available_at=NOW - SECOND,
    expires_at=None,
    lease_owner=None,
    lease_token_hash=None,
    lease_until=None,
    leased_at=None,
    last_token_hash=None,
    last_token_fate=None,
    failed_token_hash=None,
    dedupe_key=None,
    dedupe_seconds=0.0,
    dedupe_until=None,
    tombstone_id=None,
    updated_at=NOW - SECOND,
)
SCHEDULED = replace(WAITING, status=Status.SCHEDULED, available_at=NOW + SECOND)
LEASED = replace(
    WAITING,
    status=Status.LEASED,
    attempts=1,
    lease_owner="worker",
    lease_token_hash="held",
    lease_until=NOW + SECOND,
    leased_at=NOW - SECOND,
)
LOST = replace(LEASED, lease_until=NOW)
# A task of a queue that was deleted, and one of a queue that has just ended.
HOMELESS = replace(LEASED, home=None)
HOME_ENDED = QueueOfTask(ends_at=NOW, settings=DEFAULT_QUEUE_SETTINGS)
TOMBSTONE = replace(WAITING, status=Status.DONE, id=None, tombstone_id="a", dedupe_until=NOW + SECOND)


def decided() -> list[Move]:
    """Every kind of move that the functions can decide."""
    late = replace(LEASED, expires_at=NOW)
    last = replace(LEASED, max_attempts=1)
    by_time = [
        replace(SCHEDULED, available_at=NOW),
        replace(WAITING, expires_at=NOW),
        replace(SCHEDULED, expires_at=NOW),
        replace(WAITING, attempts=5),
        replace(SCHEDULED, attempts=5),
        LOST,
        replace(LOST, expires_at=NOW),
        replace(LOST, max_attempts=1),
        replace(LOST, home=None),
    ]
    moves = [overdue(task, NOW) for task in by_time]
    assert None not in moves
    return [
        *(move for move in moves if move is not None),
        acked(LEASED, NOW, None),
        *(nacked(task, NOW, NOW + SECOND, None) for task in (LEASED, late, last, HOMELESS)),
        nacked(LEASED, NOW, NOW, None),
        released(LEASED, NOW),
        released(late, NOW),
        released(HOMELESS, NOW),
        failed(LEASED, NOW, "why"),
        *(cancelled(task, NOW) for task in (WAITING, SCHEDULED, LEASED)),
    ]


def test_every_event_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(Event)


def test_every_pair_of_the_table_is_decided_by_some_function() -> None:
    """Reserve and requeue are decided by the statements that make them."""
    used = {(move.event, move.task.status, move.status) for move in decided()}
    written = {
        (event, source, target)
        for event, (sources, targets) in TRANSITIONS.items()
        if event not in {Event.RESERVE, Event.REQUEUE}
        for source, target in product(sources, targets)
    }
    assert used == written


def test_finished_tasks_only_come_back_by_requeue() -> None:
    finished = set(Status) - LIVE_STATUSES
    assert {event for event, (sources, _) in TRANSITIONS.items() if sources & finished} == {Event.REQUEUE}


@pytest.mark.parametrize("event", Event)
def test_impossible_moves_are_refused(event: Event) -> None:
    sources, targets = TRANSITIONS[event]
    for source, target in product(Status, Status):
        task = replace(WAITING, status=source)
        if source in sources and target in targets:
            Move(task, event, target, NOW, 0, NOW)
        else:
            with pytest.raises(AssertionError, match=f"{event}: {source} → {target} is not a transition"):
                Move(task, event, target, NOW, 0, NOW)


@pytest.mark.parametrize("decide", [lambda task: acked(task, NOW, None), lambda task: failed(task, NOW, "why")])
def test_waiting_task_cannot_be_settled(decide: object) -> None:
    assert callable(decide)
    with pytest.raises(AssertionError):
        decide(WAITING)


@pytest.mark.parametrize(
    ("task", "token", "expected"),
    [
        (LEASED, "held", None),
        (LEASED, "other", LeaseMismatch),
        (LOST, "held", LeaseExpired),
        (LOST, "other", TaskNotLeased),
        (WAITING, "held", TaskNotLeased),
        (replace(WAITING, last_token_hash="held", last_token_fate=TokenFate.LOST), "held", LeaseExpired),
        (replace(WAITING, last_token_hash="held", last_token_fate=TokenFate.LOST), "other", TaskNotLeased),
        (replace(WAITING, last_token_hash="held", last_token_fate=TokenFate.FAILED), "held", TaskNotLeased),
    ],
)
def test_refusal_names_its_reason(task: TaskState, token: str, expected: type[Exception] | None) -> None:
    refused = refusal(task, token, NOW)
    assert (None if refused is None else type(refused)) is expected


@pytest.mark.parametrize("task", [WAITING, SCHEDULED, LEASED, TOMBSTONE, replace(WAITING, expires_at=NOW + SECOND)])
def test_time_has_not_changed_what_is_not_overdue(task: TaskState) -> None:
    assert overdue(task, NOW) is None


def test_tombstone_is_forgotten_at_its_end() -> None:
    assert not is_forgotten(TOMBSTONE, NOW)
    assert is_forgotten(TOMBSTONE, NOW + SECOND)
    assert not is_forgotten(WAITING, NOW)


def test_lost_lease_is_dated_at_its_end_however_late_it_is_noticed() -> None:
    move = overdue(LOST, NOW + timedelta(days=1))
    assert move is not None
    assert move.attempt is not None
    assert (move.at, move.attempt.finished_at) == (NOW, NOW)


def test_released_attempt_is_taken_back_and_not_logged() -> None:
    move = released(LEASED, NOW)
    assert (move.attempts, move.attempt) == (0, None)


@pytest.mark.parametrize("home", [None, HOME_ENDED])
def test_what_would_wait_in_a_queue_that_is_gone_is_cancelled(home: QueueOfTask | None) -> None:
    homeless = replace(LEASED, home=home)
    assert nacked(homeless, NOW, NOW + SECOND, "why").status is Status.CANCELLED
    assert released(homeless, NOW).status is Status.CANCELLED
    assert nacked(replace(homeless, max_attempts=1), NOW, NOW, "why").status is Status.DEAD
    assert acked(homeless, NOW, None).status is Status.DONE
    assert failed(homeless, NOW, "why").status is Status.DEAD


@pytest.mark.parametrize("home", [None, HOME_ENDED])
@pytest.mark.parametrize("task", [WAITING, SCHEDULED, TOMBSTONE])
def test_what_waited_in_a_queue_that_is_gone_is_forgotten(task: TaskState, home: QueueOfTask | None) -> None:
    assert is_forgotten(replace(task, home=home), NOW)
    assert not is_forgotten(task, NOW)


def test_queue_is_there_until_its_end() -> None:
    alive = replace(WAITING, home=replace(HOME_ENDED, ends_at=NOW + SECOND))
    assert not is_forgotten(alive, NOW)
    assert is_forgotten(alive, NOW + SECOND)


@pytest.mark.parametrize("home", [None, HOME_ENDED])
def test_lease_in_a_queue_that_is_gone_runs_on(home: QueueOfTask | None) -> None:
    running = replace(LEASED, home=home)
    assert not is_forgotten(running, NOW)
    assert overdue(running, NOW) is None
