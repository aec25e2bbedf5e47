"""`python -m tests.pipeline.archive.killed`: archivers that are killed when all have come to a step.

Starts Spark, and then reads from standard input, as JSON, the step, the folder of the lakes and the databases.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from app.pipeline.archive.adapters import ADAPTERS, Pace
from app.pipeline.archive.archive import archive
from app.pipeline.session import open_session
from tests.pipeline.archive.requests import make_request

WAIT_SECONDS = 300
# The mark of the first batch may be missing, or a later one be cut off.
AT = {"writing": 2, "written": 2, "verified": 2, "committed": 2, "pruning": 3, "pruned": 1}


class Killer:
    """Waits at a step for the others, and then ends the process as a power cut would."""

    def __init__(self, step: str, barrier: threading.Barrier, lake: Path) -> None:
        self._step = step
        self._left = AT[step]
        self._barrier = barrier
        self._lake = lake

    def __call__(self, step: str) -> None:
        self._left -= step == self._step
        if self._left == 0 and step == self._step:
            if step == "writing":
                threading.Thread(target=self._wait_for_files, daemon=True).start()
            else:
                self._kill()

    def _wait_for_files(self) -> None:
        """In the middle of writing there are files, but not where they belong."""
        while not any(self._lake.glob("*/batch=*/_temporary/**/*.parquet")):
            time.sleep(0.001)
        self._kill()

    def _kill(self) -> None:
        self._barrier.wait(WAIT_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    for adapter in ADAPTERS.values():
        adapter.pace = Pace(rows=50, rest=0)
    spark = open_session("killed", "local[2]")
    step, folder, urls = json.loads(sys.stdin.readline())
    lakes = Path(folder)
    barrier = threading.Barrier(len(urls))

    def run(url: str) -> None:
        request = make_request(lakes, url)
        asyncio.run(archive(spark, request, on_step=Killer(step, barrier, Path(request.lake_url))))

    threads = [threading.Thread(target=run, args=[url]) for url in urls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit("nobody killed this process")


if __name__ == "__main__":
    main()
