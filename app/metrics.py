"""Every Prometheus name and label, once."""

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

MULTIPROCESS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
OTHER_QUEUES = "other"
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The counters of one process; a queue's name is a label only for the first so many queues."""

    def __init__(self, max_queues: int) -> None:
        self._max_queues = max_queues
        self._queues: set[str] = set()
        self._of_request: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._of_operation: dict[tuple[str, str, str], Counter] = {}
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "mq_http_requests_total",
            "HTTP requests by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "mq_http_request_seconds",
            "Time to answer, by route and class of status; a long poll counts its wait.",
            ("method", "route", "outcome"),
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.operations = Counter(
            "mq_operations_total",
            "Operations on tasks by queue and outcome: `ok`, `existed`, `empty` or the code of a refusal.",
            ("operation", "queue", "outcome"),
            registry=self.registry,
        )
        self.attempts_lost = Counter(
            "mq_attempt_log_lost_total",
            "Attempts that could not be logged; their tasks were settled all the same.",
            registry=self.registry,
        )

        self.janitor_rows = Counter(
            "mq_janitor_rows_total",
            "Rows that the janitor moved or deleted, by duty.",
            ("duty",),
            registry=self.registry,
        )
        self.janitor_errors = Counter(
            "mq_janitor_errors_total",
            "Rounds of the janitor that failed, by duty.",
            ("duty",),
            registry=self.registry,
        )

    def count_operation(self, operation: str, queue: str, outcome: str, times: int = 1) -> None:
        key = (operation, self._label(queue), outcome)
        counter = self._of_operation.get(key)
        if counter is None:
            counter = self._of_operation[key] = self.operations.labels(*key)
        counter.inc(times)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        counted = self._of_request.get((method, route, status))
        if counted is None:
            counted = (
                self.requests.labels(method, route, str(status)),
                self.request_seconds.labels(method, route, f"{status // 100}xx"),
            )
            self._of_request[method, route, status] = counted
        counted[0].inc()
        counted[1].observe(seconds)

    def render(self) -> bytes:
        """The exposition text: of all worker processes where there are several."""
        if MULTIPROCESS_DIRECTORY not in os.environ:
            return generate_latest(self.registry)
        everybody = CollectorRegistry()
        MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
        return generate_latest(everybody)

    def _label(self, queue: str) -> str:
        if queue in self._queues:
            return queue
        if len(self._queues) >= self._max_queues:
            return OTHER_QUEUES
        self._queues.add(queue)
        return queue
