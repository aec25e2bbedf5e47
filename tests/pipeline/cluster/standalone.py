"""A real standalone cluster on loopback: a master and two workers, started from the pip package by `spark-class`."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from app.pipeline.java import find_java, wrapped_home
from tests.pipeline.java import SHORT_LIVED
from tests.servers.ports import LOOPBACK, free_port
from tests.servers.process import FORKER
from tests.service import LAUNCH, ROOT

SETTINGS = Path(__file__).with_name("conf")
PROGRAMS = Path(pyspark.__file__).parent / "bin"
WORKERS = 2
START_SECONDS = 120
STOP_SECONDS = 30


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """The URL of a master with two workers of a core each, which end with the block."""
    port = str(free_port())
    url = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        _start(stack, directory, "master.Master", ["--port", port], until="I have been elected leader")
        for number in range(WORKERS):
            work = directory / f"worker-{number}"
            work.mkdir()
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(work), url]
            _start(stack, work, "worker.Worker", options, until="Successfully registered with master")
        yield url


def cluster_environment() -> dict[str, str]:
    """What a process needs to take part: a Java, no address but loopback, and settings for a small cluster."""
    return {
        **os.environ,
        **SHORT_LIVED,
        "JAVA_HOME": str(wrapped_home(find_java(os.environ))),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_CONF_DIR": str(SETTINGS),
        "PYSPARK_PYTHON": sys.executable,
    }


def _start(stack: ExitStack, directory: Path, part: str, options: list[str], *, until: str) -> None:
    log = directory / "log"
    command = [
        str(PROGRAMS / "spark-class"),
        f"org.apache.spark.deploy.{part}",
        "--host",
        LOOPBACK,
        "--webui-port",
        "0",
    ]
    process = FORKER.submit(_spawn, [*command, *options], log).result()
    stack.callback(_end, process)
    deadline = time.monotonic() + START_SECONDS
    while until not in log.read_text(encoding="utf-8"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{part} did not start:\n{log.read_text(encoding='utf-8')}")
        time.sleep(0.1)


def _spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(os.getpid()), *command],
            cwd=ROOT,
            env=cluster_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    # Asked to, a worker ends its executors first.
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
