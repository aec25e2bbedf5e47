"""What the commands share."""

import argparse
import subprocess
import sys
from datetime import timedelta

import pytest

from app.pipeline.commands.options import add_database_url, add_master, duration, with_spark
from app.pipeline.errors import PipelineError
from app.settings import Settings

WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from app.cli import main
sys.exit(main(["pipeline", "archive", "--lake", "lake", "--older-than", "7d"]))
"""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600), ("0.5d", 43_200), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "7", "d", "-7d", "7 d", "7days", "nan", "1e3s", "999999999w"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"no duration|too long"):
        duration(text)


def test_shared_options() -> None:
    parser = argparse.ArgumentParser()
    add_master(parser)
    add_database_url(parser)
    options = parser.parse_args(["--master", "spark://host:7077", "--database-url", "sqlite:///x.db"])
    assert (options.master, options.database_url) == ("spark://host:7077", "sqlite:///x.db")


def test_command_runs_where_spark_is_installed() -> None:
    assert with_spark(lambda settings, options: 7)(Settings(), argparse.Namespace()) == 7


def test_command_refuses_in_a_line_where_spark_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(PipelineError, match=r"needs pyspark, .*pip install 'leasemq\[pipeline\]'"):
        with_spark(lambda settings, options: 0)(Settings(), argparse.Namespace())


def test_command_line_is_read_without_spark() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "pip install 'leasemq[pipeline]'" in done.stderr
