"""A job that is killed is taken up again: nothing is lost, and nothing is enqueued twice."""

import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.pipeline.sink.command import run_command
from tests.pipeline.sink.queue import Drain, Queue
from tests.service import COMMAND, Service

ROWS = 400
TIMEOUT_SECONDS = 240.0


@pytest.mark.usefixtures("spark")
def test_a_killed_job_is_taken_up_again(
    service: Service, queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tasks.jsonl"
    # Each line twice: equal rows are tasks of their own.
    file.write_text("".join(f"{number % (ROWS // 2)}\n" for number in range(ROWS)))
    into = ["--queue", queue.name, "--to", service.url]
    job = ["load", str(file), *into, "--state", str(tmp_path / "jobs"), "--job", "killed"]
    with Drain(queue) as drain:
        # Slow enough to be killed in the middle of it.
        process = subprocess.Popen(
            [COMMAND, "pipeline", *job, "--rate", "20", "--master", "local[2]"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "MQ_LOG_LEVEL": "error"},
        )  # fmt: skip
        deadline = time.monotonic() + TIMEOUT_SECONDS
        # As soon as a part is written down, long before the end.
        record = tmp_path / "jobs" / "killed.json"
        while not record.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        process.wait()
        taken = drain.payloads.total()
        assert 0 < taken < ROWS // 2
        assert run_command(*job) == 0
        assert re.search(rf"{ROWS} rows, [1-9]\d* of them sent before", capsys.readouterr().out)
    assert drain.payloads == Counter({str(number): 2 for number in range(ROWS // 2)})
