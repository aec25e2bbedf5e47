"""What is sent to a cluster."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from app.pipeline.commands.package import ENTRY, ZIP
from app.pipeline.errors import PipelineError
from tests.pipeline.sink.command import run_command


def test_package_has_the_code_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = tmp_path / "jobs"
    assert run_command("package", into) == 0
    assert capsys.readouterr().out == f"spark-submit --py-files {into / ZIP} {into / ENTRY} COMMAND …\n"
    with ZipFile(into / ZIP) as package:
        names = package.namelist()
    assert {"app/__init__.py", "app/pipeline/archive/postgresql.sql", "app/repository/mysql.sql"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or not name.startswith("app/")]
    assert "app.cli" in (into / ENTRY).read_text()


def test_place_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PipelineError, match="cannot be written to: "):
        run_command("package", tmp_path / "file" / "jobs")
