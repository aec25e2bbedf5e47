"""What is kept of a job between its runs."""

from pathlib import Path

import pytest

from app.pipeline.errors import PipelineError
from app.pipeline.sink.record import Measure, Records, purpose_of
from app.pipeline.sink.refused import Tally

ROWS = Measure(100, "sum")


def test_finished_parts_are_left_out(tmp_path: Path) -> None:
    records = Records(tmp_path / "jobs")
    records.prepare()
    record = records.begin("job", "purpose", ROWS, 4).with_done([0, 2], Tally(60, 1, 2, ("why",)))
    records.save(record)
    # What was decided first holds: parts are the same in every run.
    again = Records(tmp_path / "jobs").begin("job", "purpose", ROWS, 9)
    assert again == record
    assert (again.parts, again.pending()) == (4, [1, 3])


def test_other_rows_begin_anew(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.save(records.begin("job", "purpose", ROWS, 4).with_done([0], Tally(25)))
    for changed in (Measure(101, "sum"), Measure(100, "other")):
        assert records.begin("job", "purpose", changed, 4).done == ()


def test_a_job_with_other_options_is_another_job(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.save(records.begin("job", purpose_of({"queue": "a"}), ROWS, 4))
    with pytest.raises(PipelineError, match="job job was begun with other options"):
        records.begin("job", purpose_of({"queue": "b"}), ROWS, 4)


def test_a_file_that_is_no_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(PipelineError, match="is no record of a job"):
        Records(tmp_path).begin("job", "purpose", ROWS, 4)


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="cannot keep records"):
        Records(tmp_path / "file").prepare()
