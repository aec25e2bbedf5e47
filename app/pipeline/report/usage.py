"""Who used the queue for how much."""

import pyarrow as pa
import pyarrow.compute as pc


def usage_by_tenant(tasks_by_tenant: pa.Table, attempts_by_tenant: pa.Table) -> pa.Table:
    """Tasks, bytes of payload and logged seconds of work of each tenant, most tasks first."""
    asked = tasks_by_tenant.select(["tenant", "tasks", "payload_bytes"])
    worked = attempts_by_tenant.select(["tenant", "attempts", "seconds"])
    usage = asked.join(worked, "tenant", join_type="full outer")
    for place, name in enumerate(usage.column_names):
        if name != "tenant":
            usage = usage.set_column(place, name, pc.fill_null(usage[name], 0))
    return usage.sort_by([("tasks", "descending"), ("tenant", "ascending")])
