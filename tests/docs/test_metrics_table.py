"""Operators read of every metric what the code says of it."""

from prometheus_client import Metric

from app.metrics import Metrics
from tests.docs.markdown import ROOT, names, table

OPERATING = ROOT / "docs" / "operating.md"
# Labels that a kind of metric adds by itself.
OWN_LABELS = {"le"}


def metrics_in_use() -> list[Metric]:
    """The metrics after one of everything has been counted, so that their labels show."""
    metrics = Metrics(max_queues=1)
    metrics.count_operation("enqueue", "mail", "ok")
    metrics.count_request("GET", "/healthz", 200, 0.001)
    metrics.attempts_lost.inc()
    metrics.janitor_rows.labels("move_overdue").inc()
    metrics.janitor_errors.labels("move_overdue").inc()
    return list(metrics.registry.collect())


def described(metric: Metric) -> tuple[str, str, frozenset[str], str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    labels = frozenset(label for sample in metric.samples for label in sample.labels) - OWN_LABELS
    return name, metric.type, labels, metric.documentation


def test_table_is_that_of_the_code() -> None:
    rows = table(OPERATING.read_text(encoding="utf-8"), "Name", "Type", "Labels", "Meaning")
    documented = [
        ("".join(names(name)), kind, frozenset(names(labels)), meaning) for name, kind, labels, meaning in rows
    ]
    assert documented == [described(metric) for metric in metrics_in_use()]


def test_every_name_has_the_prefix() -> None:
    assert all(metric.name.startswith("mq_") for metric in metrics_in_use())
