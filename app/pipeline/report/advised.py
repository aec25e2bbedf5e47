"""The advice as a table."""

from collections.abc import Iterable

import pyarrow as pa

from app.pipeline.advice.findings import Advice, QueueAdvice

ADVICE_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("tenant", "queue", "about", "sentence", "confidence", "caveats")]
)


def advice_table(advised: Iterable[QueueAdvice]) -> pa.Table:
    """A row for each piece of advice."""
    rows = [
        {
            "tenant": one.key.tenant_id,
            "queue": one.key.queue,
            "about": about,
            "sentence": part.sentence,
            "confidence": str(part.confidence),
            "caveats": " ".join(part.caveats),
        }
        for one in advised
        for about, part in _parts(one).items()
    ]
    return pa.Table.from_pylist(rows, ADVICE_SCHEMA)


def _parts(one: QueueAdvice) -> dict[str, Advice]:
    return {
        "lease": one.lease,
        "attempts": one.attempts,
        "backoff": one.backoff,
        "workers": one.workers,
        "backlog": one.drain,
    }
