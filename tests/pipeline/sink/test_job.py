"""A job in parts: of which size they are, and what becomes of the others when one fails."""

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

from app.pipeline.messages import SPARK_ERRORS
from app.pipeline.sink.job import IDENTITY, KEY, MAX_PARTS, PART_ROWS, Rows, count_parts, measure, send
from app.pipeline.sink.options import SinkOptions
from app.pipeline.sink.record import Records
from tests.servers.ports import LOOPBACK

HANG_SECONDS = 120.0


@pytest.mark.parametrize(
    ("rows", "rate_per_second", "parts"),
    [
        (10 * PART_ROWS, None, 10),
        # Four cores send 25 a second each, in parts of 50.
        (3000, 100.0, 60),
        # A rate that is no bound makes no smaller parts.
        (10 * PART_ROWS, 1_000_000.0, 10),
        # A core sends a row in forty seconds.
        (8, 0.1, 8),
        (3, None, 4),
        (10**9, None, MAX_PARTS),
    ],
)
def test_a_part_is_sent_in_some_seconds(rows: int, rate_per_second: float | None, parts: int) -> None:
    assert count_parts(rows, rate_per_second, parallelism=4) == parts


@pytest.fixture
def hanging_url() -> Iterator[str]:
    """A service that does not know who sends row 0, and does not answer for the others."""
    released = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if b'"payload":0' not in self.rfile.read(int(self.headers["Content-Length"])):
                released.wait(HANG_SECONDS)
            self.send_error(401)

        def log_message(self, format: str, *args: object) -> None:
            """Keeps quiet."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{LOOPBACK}:{server.server_port}"
    released.set()
    server.shutdown()
    server.server_close()


def test_a_part_that_fails_ends_the_others(spark: SparkSession, hanging_url: str, tmp_path: Path) -> None:
    # The part that row 0 is in fails, the other one hangs.
    frame = spark.range(10).selectExpr("cast(id as string) payload", f"cast(id as string) {IDENTITY}")
    rows, records = Rows(frame, repeated=False), Records(tmp_path)
    record = records.begin("job", "purpose", measure(rows), parts=2)
    options = SinkOptions(hanging_url, queue="mail", job="job", key=KEY, request_seconds=HANG_SECONDS)
    begun_at = time.monotonic()
    with pytest.raises(SPARK_ERRORS, match="401"):
        send(rows, options, records, record, lambda sent: None)
    assert time.monotonic() - begun_at < HANG_SECONDS / 2
