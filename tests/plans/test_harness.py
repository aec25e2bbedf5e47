"""The look at plans sees what it should: otherwise all is well with any plan."""

import pytest

from tests.plans.conftest import BACKLOG, Plans
from tests.plans.recording import Sent, explain, rows_read

SCAN = "SELECT t.* FROM mq_tasks AS t WHERE t.size = 7"
SCAN_TO_CHANGE = "UPDATE mq_tasks SET size = 8 WHERE size = 7"
SCAN_TO_DELETE = "DELETE FROM mq_tasks WHERE size = 7"
SORT = "SELECT * FROM mq_tasks AS t WHERE t.queue_id = {queue} AND t.status = 'ready' ORDER BY t.created_at, t.size"
SORT_OF_FEW = "SELECT * FROM (SELECT * FROM mq_tasks AS t ORDER BY t.seq LIMIT 10) AS few ORDER BY few.created_at"
WALK = "SELECT * FROM mq_tasks AS t WHERE t.seq > 0 AND t.type = 'absent' ORDER BY t.seq LIMIT 1"
LOOK = "SELECT * FROM mq_tasks AS t WHERE t.seq = 7"


async def sent(plans: Plans, sql: str) -> Sent:
    """The statement, as it comes to the driver; its queue is the one with the backlog."""
    queue = (await plans.topology.get("big")).id
    return Sent(sql.format(queue=queue), ())


@pytest.mark.parametrize("sql", [SCAN, SCAN_TO_CHANGE, SCAN_TO_DELETE], ids=["select", "update", "delete"])
async def test_scan_of_a_large_table_is_seen(plans: Plans, sql: str) -> None:
    for plan in await explain(plans.dialect, await sent(plans, sql)):
        assert plan.scans()


async def test_sort_of_the_backlog_is_seen(plans: Plans) -> None:
    for plan in await explain(plans.dialect, await sent(plans, SORT)):
        assert plan.sorts()


@pytest.mark.parametrize("sql", [SORT_OF_FEW, LOOK], ids=["few", "one"])
async def test_sort_of_a_few_is_none_of_the_backlog(plans: Plans, sql: str) -> None:
    for plan in await explain(plans.dialect, await sent(plans, sql)):
        assert not plan.sorts()


async def test_rows_that_are_read_are_counted(plans: Plans) -> None:
    assert await rows_read(plans.dialect, [await sent(plans, WALK)]) > BACKLOG // 2
    assert await rows_read(plans.dialect, [await sent(plans, LOOK)]) < 100
