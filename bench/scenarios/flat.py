"""What a call costs on a small table, and when very much lies in the tables that it should not notice."""

import asyncio

from bench.direct.call_costs import measure_call_costs
from bench.direct.filling import Filler, filling
from bench.ratios import Claim
from bench.scenario import Contestant, Scenario
from bench.stage import Stage

SMALL = "small"


async def _fill(url: str, small: int, more: Filler | None) -> None:
    async with filling(url) as table:
        await table.add_ready(small)
        if more is not None:
            await more(table)
        await table.settle()


def _contestant(stage: Stage, name: str, more: Filler | None) -> Contestant:
    url = stage.databases.create("postgresql")
    asyncio.run(_fill(url, stage.form.flat.small, more))
    return Contestant(name, lambda: asyncio.run(measure_call_costs(url, stage.form.flat_samples)))


def _prepare(stage: Stage) -> list[Contestant]:
    sizes = stage.form.flat
    fillers: dict[str, Filler | None] = {
        SMALL: None,
        "ready": lambda table: table.add_ready(sizes.ready),
        "scheduled": lambda table: table.add_scheduled(sizes.scheduled),
        "queues": lambda table: table.add_queues(sizes.queues),
        "leased": lambda table: table.add_leased(sizes.leased),
        "history": lambda table: table.add_history(sizes.history),
    }
    stage.notes.append(
        f"flat: {sizes.small:,} ready rows, and then {sizes.ready:,} ready, {sizes.scheduled:,} scheduled of higher"
        f" priority, {sizes.queues:,} queues, {sizes.leased:,} leased, {sizes.history:,} of history"
        " rows"
    )
    return [_contestant(stage, name, more) for name, more in fillers.items()]


def _claim(call: str, name: str, what: str) -> Claim:
    text = f"{call.capitalize()} {what}, against 10,000 rows"
    return Claim(text, "flat", f"{name}.{call}_ms", f"{SMALL}.{call}_ms", 1.5, at_least=False)


CASES = {
    "ready": "with very many ready rows (5M in the full form)",
    "scheduled": "with very many scheduled in front (1M in the full form)",
    "queues": "among very many queues (10k in the full form)",
    "leased": "with very many leased (100k in the full form)",
    "history": "with much history (10M rows in the full form)",
}

FLAT = Scenario(
    name="flat",
    title="Flat as the tables grow: milliseconds a call, in process, one at a time",
    prepare=_prepare,
    claims=[_claim(call, name, what) for name, what in CASES.items() for call in ("reserve", "ack", "enqueue")],
    # Many short rounds: what is to be seen is small, and a busy moment must not look like growth.
    rounds=7,
    shown=("reserve_ms", "ack_ms", "enqueue_ms"),
)
