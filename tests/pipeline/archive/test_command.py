"""`leasemq pipeline archive` as users call it."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.repository.factory import connect_dialect
from app.repository.schema import migrate
from tests.pipeline.archive.ledger import open_ledger
from tests.pipeline.archive.requests import OLD

COMMAND = [str(Path(sys.executable).with_name("leasemq")), "pipeline", "archive"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/mq.db"


async def test_archive_tells_what_it_did(tmp_path: Path, url: str) -> None:
    ledger = await open_ledger(url)
    await ledger.finish_many(5, OLD)
    await ledger.dialect.close()
    arguments = ["--lake", f"file://{tmp_path}/lake", "--older-than", "7d", "--master", "local[1]"]
    done = _run(*arguments, "--database-url", url)
    assert (done.returncode, done.stdout) == (0, "history: 5 rows moved\nattempts: 5 rows moved\n"), done.stderr
    assert "5 of 5 rows deleted from the database" in done.stderr
    refused = _run("--lake", str(tmp_path), *arguments[2:], "--database-url", url)
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        2, f"leasemq: {tmp_path} is not a lake, and it is not empty: give a new or an empty directory.",
    )  # fmt: skip


async def test_a_lake_that_is_a_file_is_refused(tmp_path: Path, url: str) -> None:
    ledger = await open_ledger(url)
    await ledger.dialect.close()
    lake = tmp_path / "tasks.csv"
    lake.touch()
    done = _run("--lake", str(lake), "--older-than", "7d", "--master", "local[1]", "--database-url", url)
    _check_refused(done, f"leasemq: The lake file://{lake} cannot be used: Not a directory.")


def test_less_than_an_hour_is_refused(tmp_path: Path, url: str) -> None:
    _check_refused(_run("--lake", f"{tmp_path}/lake", "--older-than", "59m", "--database-url", url), "an hour at least")


def test_a_database_that_is_not_there_is_refused(tmp_path: Path, url: str) -> None:
    _check_refused(_run("--lake", f"{tmp_path}/lake", "--older-than", "7d", "--database-url", url), "there is no file")
    assert list(tmp_path.iterdir()) == []


async def test_a_database_of_another_version_is_refused(tmp_path: Path, url: str) -> None:
    dialect = connect_dialect(url)
    await migrate(dialect, "0002")
    await dialect.close()
    done = _run("--lake", f"{tmp_path}/lake", "--older-than", "7d", "--database-url", url)
    _check_refused(done, "schema revision 0002")
    assert not (tmp_path / "lake").exists()


def _check_refused(done: subprocess.CompletedProcess[str], reason: str) -> None:
    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in line


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
