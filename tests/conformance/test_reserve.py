"""Reserving: which tasks, in which order, and what a lease is."""

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.commands import ReserveRequest
from app.domain.identifiers import new_task_id
from app.domain.task import Payload, Status
from app.repository.protocol import Repository
from tests.conformance.steps import MAX_BYTES, QUEUE, T0, Store, ack_item, at, ids, json_payload, new_task, settled

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


async def test_nothing_to_do_is_an_empty_reply(store: Store) -> None:
    reserved = await store.reserve()
    assert (reserved.tasks, reserved.server_time, reserved.next_available_at) == ([], T0, None)


async def test_reserved_task_is_leased(store: Store) -> None:
    await store.enqueue("a")
    leased = await store.reserve_one(at(5), lease_seconds=12.5, worker_id="me")
    task = leased.task
    assert (task.id, task.status, task.attempts) == ("a", Status.LEASED, 1)
    assert (task.lease_owner, task.lease_until) == ("me", at(17.5))
    assert (task.first_leased_at, task.updated_at, task.available_at) == (at(5), at(5), T0)


async def test_task_is_the_same_when_looked_at(store: Store) -> None:
    leased = await store.lease("a")
    assert await store.get("a") == leased.task


async def test_task_of_which_everything_is_said_is_the_same_when_looked_at(store: Store) -> None:
    await store.enqueue(
        "a", topic="news", publish_id="p", type="mail", payload=Payload(b"\0", False, "image/png"), meta='{"a": 1}',
        priority=-7, dedupe_key="key", max_attempts=3, ttl_seconds=500, timeout_seconds=1.5,
    )  # fmt: skip
    settled(await store.nack(await store.reserve_one(at(1)), at(2), error="once", delay_seconds=3))
    leased = await store.reserve_one(at(9), worker_id="me")
    assert (leased.task.attempts, leased.task.last_error, leased.task.available_at) == (2, "once", at(5))
    assert await store.get("a", at(10)) == leased.task


async def test_leased_task_is_not_reserved_again(store: Store) -> None:
    await store.lease("a")
    assert await store.reserve_ids(at(29.999999)) == []


async def test_worker_without_a_name_has_a_lease_all_the_same(store: Store) -> None:
    await store.enqueue("a")
    leased = await store.reserve_one(worker_id=None)
    assert (leased.task.lease_owner, leased.task.lease_until) == (None, at(30))
    assert await store.reserve_ids() == []
    settled(await store.ack(leased))
    assert (await store.get("a")).lease_owner is None


async def test_every_lease_has_a_token_of_its_own(store: Store) -> None:
    await store.enqueue_many(*(new_task() for _ in range(20)))
    tasks = (await store.reserve(limit=20)).tasks
    assert len({task.lease_token for task in tasks}) == 20


async def test_each_token_belongs_to_the_task_it_came_with(store: Store) -> None:
    await store.enqueue_many(*(new_task(priority=number % 7) for number in range(20)))
    tasks = (await store.reserve(limit=20)).tasks
    outcomes = await store.repository.ack_many(store.tenant, [ack_item(task) for task in tasks], T0)
    assert [settled(outcome).id for outcome in outcomes] == ids(tasks)


async def test_higher_priority_runs_first(store: Store) -> None:
    await store.enqueue_many(*(new_task(str(priority), priority=priority) for priority in (20, 10, 30, 25)))
    assert await store.reserve_ids() == ["30", "25", "20", "10"]


async def test_priorities_span_all_of_32_bits(store: Store) -> None:
    priorities = [0, INT32_MIN, -1, INT32_MAX, 1]
    await store.enqueue_many(*(new_task(f"p{priority}", priority=priority) for priority in priorities))
    reserved = [(await store.reserve_one()).task.priority for _ in priorities]
    assert reserved == [INT32_MAX, 1, 0, -1, INT32_MIN]


async def test_earlier_due_time_runs_first_among_equals(store: Store) -> None:
    await store.enqueue("later", available_at=at(-1))
    await store.enqueue("earlier", available_at=at(-2))
    await store.enqueue("earliest", available_at=at(-3))
    assert await store.reserve_ids() == ["earliest", "earlier", "later"]


async def test_order_of_acceptance_decides_the_rest(store: Store) -> None:
    for name in ("c", "a", "b"):
        await store.enqueue(name, available_at=T0)
    assert await store.reserve_ids() == ["c", "a", "b"]


async def test_ids_that_we_make_follow_the_order_of_acceptance(store: Store) -> None:
    made = [new_task_id() for _ in range(30)]
    await store.enqueue_many(*(new_task(name) for name in made))
    assert await store.reserve_ids() == made == sorted(made)


async def test_limit_is_kept_and_takes_the_first(store: Store) -> None:
    await store.enqueue_many(*(new_task(name) for name in "abcde"))
    assert await store.reserve_ids(limit=2) == ["a", "b"]
    assert await store.reserve_ids(limit=2) == ["c", "d"]
    assert await store.reserve_ids(limit=2) == ["e"]


async def test_other_queues_are_left_alone(store: Store) -> None:
    await store.enqueue("a", queue="other")
    assert await store.reserve_ids() == []


async def test_other_tenants_are_left_alone(store: Store, other_store: Store) -> None:
    await store.enqueue("a")
    assert await other_store.reserve_ids() == []
    assert await other_store.reserve_ids(queues=[QUEUE, "other"]) == []
    assert (await other_store.reserve()).next_available_at is None


class TestTypes:
    """A reserve may name the types that it wants; '' is a type too."""

    @pytest.fixture(autouse=True)
    async def tasks(self, store: Store) -> None:
        await store.enqueue_many(
            new_task("mail-1", type="mail", priority=1),
            new_task("none-1", priority=5),
            new_task("call-1", type="call", priority=9),
            new_task("mail-2", type="mail", priority=7),
            new_task("none-2", priority=3),
        )

    async def test_no_types_are_all_types(self, store: Store) -> None:
        assert await store.reserve_ids() == ["call-1", "mail-2", "none-1", "none-2", "mail-1"]

    async def test_one_type(self, store: Store) -> None:
        assert await store.reserve_ids(types=["mail"]) == ["mail-2", "mail-1"]

    async def test_several_types_are_merged_by_priority(self, store: Store) -> None:
        assert await store.reserve_ids(types=["mail", "call"]) == ["call-1", "mail-2", "mail-1"]

    async def test_empty_type_is_that_of_tasks_without_one(self, store: Store) -> None:
        assert await store.reserve_ids(types=[""]) == ["none-1", "none-2"]

    async def test_empty_type_among_others(self, store: Store) -> None:
        assert await store.reserve_ids(types=["mail", ""]) == ["mail-2", "none-1", "none-2", "mail-1"]

    async def test_unknown_type(self, store: Store) -> None:
        assert await store.reserve_ids(types=["fax"]) == []

    async def test_limit_over_several_types(self, store: Store) -> None:
        assert await store.reserve_ids(types=["mail", "", "call"], limit=3) == ["call-1", "mail-2", "none-1"]

    async def test_types_in_several_queues(self, store: Store) -> None:
        await store.enqueue("far-mail", queue="far", type="mail", priority=8)
        await store.enqueue("far-none", queue="far", priority=8)
        assert await store.reserve_ids(queues=[QUEUE, "far"], types=["mail"]) == ["far-mail", "mail-2", "mail-1"]

    async def test_excluded_ids_of_a_type(self, store: Store) -> None:
        assert await store.reserve_ids(types=["mail"], exclude_ids=["mail-2"]) == ["mail-1"]


async def test_excluded_ids_are_passed_over(store: Store) -> None:
    await store.enqueue_many(*(new_task(name) for name in "abcd"))
    assert await store.reserve_ids(exclude_ids=["a", "c", "unknown"], limit=1) == ["b"]
    assert await store.reserve_ids(exclude_ids=["a", "c", "unknown"]) == ["d"]
    assert await store.reserve_ids() == ["a", "c"]


async def test_thousand_excluded_ids(store: Store) -> None:
    await store.enqueue_many(new_task("a"), new_task("b"))
    excluded = ["a", *(f"unknown-{number}" for number in range(999))]
    assert await store.reserve_ids(exclude_ids=excluded) == ["b"]
    assert await store.reserve_ids(exclude_ids=excluded, queues=[QUEUE, "other"]) == []


class TestSeveralQueues:
    """The highest priority wins, whatever its queue; among equals the queues take turns."""

    async def test_highest_priority_wins(self, store: Store) -> None:
        await store.enqueue_many(
            new_task("one-5", queue="one", priority=5),
            new_task("two-9", queue="two", priority=9),
            new_task("one-7", queue="one", priority=7),
            new_task("two-6", queue="two", priority=6),
        )
        assert await store.reserve_ids(queues=["one", "two"]) == ["two-9", "one-7", "two-6", "one-5"]

    async def test_equal_priorities_take_turns_in_the_order_given(self, store: Store) -> None:
        tasks = [new_task(f"{queue}-{number}", queue=queue) for queue in ("one", "two", "six") for number in (1, 2)]
        await store.enqueue_many(*tasks)
        expected = ["two-1", "six-1", "one-1", "two-2", "six-2", "one-2"]
        assert await store.reserve_ids(queues=["two", "six", "one"]) == expected

    async def test_turns_do_not_depend_on_age(self, store: Store) -> None:
        await store.enqueue_many(*(new_task(f"old-{number}", queue="old") for number in range(3)))
        await store.enqueue("new", at(9), queue="new")
        assert await store.reserve_ids(at(9), queues=["old", "new"], limit=2) == ["old-0", "new"]

    async def test_within_a_queue_its_order_is_kept(self, store: Store) -> None:
        await store.enqueue_many(
            new_task("late", queue="one", available_at=at(-1)), new_task("early", queue="one", available_at=at(-2))
        )
        await store.enqueue("other", queue="two")
        assert await store.reserve_ids(queues=["one", "two"]) == ["early", "other", "late"]

    async def test_limit_over_several_queues(self, store: Store) -> None:
        tasks = [new_task(f"{queue}-{number}", queue=queue) for queue in ("one", "two") for number in range(5)]
        await store.enqueue_many(*tasks)
        assert await store.reserve_ids(queues=["one", "two"], limit=3) == ["one-0", "two-0", "one-1"]

    async def test_hundred_queues(self, store: Store) -> None:
        queues = [f"queue-{number}" for number in range(100)]
        await store.enqueue_many(*(new_task(f"in-{queue}", queue=queue) for queue in reversed(queues)))
        assert await store.reserve_ids(queues=queues) == [f"in-{queue}" for queue in queues]

    async def test_queues_that_are_not_named_are_left_alone(self, store: Store) -> None:
        await store.enqueue("a", queue="three", priority=99)
        assert await store.reserve_ids(queues=["one", "two"]) == []

    async def test_lease_is_the_same_as_from_one_queue(self, store: Store) -> None:
        await store.enqueue("a")
        leased = await store.reserve_one(at(5), queues=["other", QUEUE], lease_seconds=12.5, worker_id="me")
        task = leased.task
        assert (task.status, task.attempts, task.lease_owner) == (Status.LEASED, 1, "me")
        assert (task.lease_until, task.first_leased_at) == (at(17.5), at(5))
        assert await store.get("a", at(5)) == task
        settled(await store.ack(leased, at(6)))

    async def test_excluded_ids(self, store: Store) -> None:
        await store.enqueue_many(new_task("a", queue="one"), new_task("b", queue="two"))
        assert await store.reserve_ids(queues=["one", "two"], exclude_ids=["a"]) == ["b"]


class TestDue:
    """A scheduled task is not delivered before its time, and at once when it has come."""

    @pytest.mark.parametrize("queues", [[QUEUE], [QUEUE, "other"]])
    async def test_scheduled_task_waits_whatever_its_priority(self, store: Store, queues: list[str]) -> None:
        await store.enqueue("urgent", priority=99, delay_seconds=60)
        await store.enqueue("ordinary")
        assert await store.reserve_ids(at(59.999999), queues=queues) == ["ordinary"]

    @pytest.mark.parametrize("queues", [[QUEUE], [QUEUE, "other"]])
    async def test_due_task_is_delivered_at_once(self, store: Store, queues: list[str]) -> None:
        await store.enqueue("urgent", priority=99, delay_seconds=60)
        await store.enqueue("ordinary")
        assert await store.reserve_ids(at(60), queues=queues) == ["urgent", "ordinary"]

    async def test_due_task_takes_its_place_by_due_time(self, store: Store) -> None:
        await store.enqueue("was-scheduled", delay_seconds=10)
        await store.enqueue("was-ready", at(20))
        leased = await store.reserve(at(30), limit=2)
        assert ids(leased.tasks) == ["was-scheduled", "was-ready"]
        assert leased.tasks[0].task.available_at == at(10)

    async def test_due_task_of_a_type(self, store: Store) -> None:
        await store.enqueue("a", type="mail", delay_seconds=10)
        assert await store.reserve_ids(at(10), types=["mail"]) == ["a"]


async def test_attempts_count_deliveries(store: Store) -> None:
    await store.enqueue("a", max_attempts=0)
    for number in range(1, 4):
        leased = await store.reserve_one(at(100 * number))
        assert leased.task.attempts == number


async def test_first_lease_is_remembered(store: Store) -> None:
    await store.enqueue("a")
    await store.reserve_one(at(1), worker_id="one")
    again = await store.reserve_one(at(100), worker_id="two")
    assert (again.task.first_leased_at, again.task.lease_owner) == (at(1), "two")


class TestMaxBytes:
    """A reply ends with the task that fills it, and is never empty because a task is large."""

    @pytest.fixture(autouse=True)
    async def tasks(self, store: Store) -> None:
        payload = json_payload('"' + "x" * 998 + '"')
        await store.enqueue_many(*(new_task(name, payload=payload) for name in "abcde"))

    @pytest.mark.parametrize("queues", [[QUEUE], [QUEUE, "other"]])
    async def test_reply_is_cut(self, store: Store, queues: list[str]) -> None:
        assert await store.reserve_ids(max_bytes=2500, queues=queues) == ["a", "b", "c"]

    @pytest.mark.parametrize("queues", [[QUEUE], [QUEUE, "other"]])
    async def test_at_least_one(self, store: Store, queues: list[str]) -> None:
        assert await store.reserve_ids(max_bytes=1, queues=queues) == ["a"]

    async def test_bytes_count_as_the_base64_that_they_become(self, store: Store) -> None:
        payload = Payload(b"x" * 900, is_json=False, content_type="application/octet-stream")
        await store.enqueue_many(*(new_task(name, queue="bytes", payload=payload) for name in "xyz"))
        assert await store.reserve_ids(max_bytes=1200, queues=["bytes"]) == ["x"]
        assert await store.reserve_ids(max_bytes=1300, queues=["bytes"]) == ["y", "z"]

    async def test_meta_counts_by_its_bytes(self, store: Store) -> None:
        meta = '{"a":"' + "\U0001f600" * 300 + '"}'
        await store.enqueue_many(*(new_task(name, queue="meta", meta=meta) for name in "xy"))
        assert await store.reserve_ids(max_bytes=1000, queues=["meta"]) == ["x"]

    async def test_what_was_cut_is_not_leased(self, store: Store) -> None:
        await store.reserve_ids(max_bytes=1)
        assert (await store.get("b")).attempts == 0
        assert await store.reserve_ids() == ["b", "c", "d", "e"]


class TestExpiredTasks:
    """A task whose deadline has passed is not delivered."""

    @pytest.mark.parametrize("queues", [[QUEUE], [QUEUE, "other"]])
    @pytest.mark.parametrize("types", [(), ("mail",)])
    async def test_passed_deadline(self, store: Store, queues: list[str], types: tuple[str, ...]) -> None:
        await store.enqueue("gone", type="mail", ttl_seconds=10, priority=99)
        await store.enqueue("here", type="mail")
        assert await store.reserve_ids(at(10), queues=queues, types=types) == ["here"]
        assert await store.status("gone", at(10)) is Status.EXPIRED

    async def test_deadline_ahead(self, store: Store) -> None:
        await store.enqueue("a", ttl_seconds=10)
        assert await store.reserve_ids(at(9.999999)) == ["a"]

    async def test_deadline_before_the_due_time(self, store: Store) -> None:
        await store.enqueue("a", ttl_seconds=10, delay_seconds=20)
        assert await store.reserve_ids(at(20)) == []


class TestNextAvailableAt:
    """An empty reply tells when it may be worth to ask again, if that is known."""

    async def test_next_due_time(self, store: Store) -> None:
        await store.enqueue("later", delay_seconds=60)
        await store.enqueue("sooner", delay_seconds=40)
        assert (await store.reserve()).next_available_at == at(40)

    async def test_end_of_the_next_lease(self, store: Store) -> None:
        await store.enqueue_many(new_task("a"), new_task("b"))
        await store.reserve_one(lease_seconds=20)
        await store.reserve_one(lease_seconds=10)
        assert (await store.reserve()).next_available_at == at(10)

    async def test_earliest_of_the_two(self, store: Store) -> None:
        await store.lease("leased")
        await store.enqueue("scheduled", delay_seconds=31)
        assert (await store.reserve(at(1))).next_available_at == at(30)

    async def test_earliest_of_several_queues(self, store: Store) -> None:
        await store.enqueue("a", queue="one", delay_seconds=60)
        await store.enqueue("b", queue="two", delay_seconds=40)
        await store.enqueue("c", queue="three", delay_seconds=20)
        assert (await store.reserve(queues=["one", "two"])).next_available_at == at(40)

    async def test_only_of_the_types_asked_for(self, store: Store) -> None:
        await store.enqueue("a", type="mail", delay_seconds=60)
        await store.enqueue("b", delay_seconds=40)
        assert (await store.reserve(types=["mail"])).next_available_at == at(60)
        assert (await store.reserve(types=["", "mail"])).next_available_at == at(40)
        assert (await store.reserve(types=["fax"])).next_available_at is None

    async def test_lease_of_the_last_attempt_brings_nothing_back(self, store: Store) -> None:
        await store.lease("a", max_attempts=1)
        assert (await store.reserve()).next_available_at is None

    async def test_deadline_before_the_due_time_brings_nothing(self, store: Store) -> None:
        await store.enqueue("a", delay_seconds=60, ttl_seconds=60)
        assert (await store.reserve()).next_available_at is None

    async def test_asking_at_that_time_finds_the_task(self, store: Store) -> None:
        await store.enqueue("a", delay_seconds=1.234567)
        next_at = (await store.reserve()).next_available_at
        assert next_at is not None
        assert await store.reserve_ids(next_at) == ["a"]


async def test_server_time_is_the_databases_clock_in_utc(repository: Repository, tenant: str) -> None:
    request = ReserveRequest(tenant, [QUEUE], limit=1, lease_seconds=30, max_bytes=MAX_BYTES)
    [reserved] = await repository.reserve_many([request])
    assert reserved.server_time.utcoffset() == timedelta(0)
    assert abs(reserved.server_time - datetime.now(UTC)) < timedelta(minutes=1)


async def test_every_instant_is_in_utc_on_servers_that_are_not(repository: Repository, tenant: str) -> None:
    await repository.enqueue_many(tenant, [new_task("a", ttl_seconds=3600)])
    request = ReserveRequest(tenant, [QUEUE], limit=1, lease_seconds=30, max_bytes=MAX_BYTES)
    [reserved] = await repository.reserve_many([request])
    task = reserved.tasks[0].task
    assert task.lease_until == reserved.server_time + timedelta(seconds=30)
    assert task.expires_at == task.created_at + timedelta(hours=1)
    assert abs(task.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert {task.created_at.utcoffset(), task.lease_until.utcoffset()} == {timedelta(0)}
