"""`leasemq pipeline load`: rows of files become tasks, once, however often the job is run."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.pipeline.errors import PipelineError
from app.pipeline.load import FieldMap, load_rows, read_file, to_tasks
from app.pipeline.sink.job import IDENTITY
from tests.pipeline.sink.command import run_command
from tests.pipeline.sink.queue import Queue
from tests.service import Service

pytestmark = pytest.mark.usefixtures("spark")

CSV = 'to,prio,body\nada,5,"{""a"": 1}"\nbob,7,"[1,\n2]"\nada,5,"{""a"": 1}"\n,6,null\n'
LINES = '{"to":"ada","n":1.10,"big":12345678901234567890123}\n\n{"to":"bob","n":2}\n'


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text(LINES)
    return path


def load(path: Path, service: Service, queue: Queue, state: Path, *arguments: str) -> int:
    return run_command(
        "load", path, "--queue", queue.name, "--to", service.url, "--state", state / "jobs", *arguments
    )  # fmt: skip


def tasks(spark: SparkSession, path: Path, fields: FieldMap) -> list[dict[str, object]]:
    found = to_tasks(read_file(spark, str(path)), fields).drop(IDENTITY)
    return [row.asDict() for row in found.collect()]


def test_columns_are_mapped(spark: SparkSession, csv: Path) -> None:
    found = tasks(spark, csv, FieldMap({"priority": "prio", "payload": "body"}))
    assert [(task["priority"], task["payload"]) for task in found] == [
        (5, '{"a": 1}'), (7, "[1,\n2]"), (5, '{"a": 1}'), (6, "null"),
    ]  # fmt: skip


def test_a_payload_is_the_row_or_some_columns(spark: SparkSession, csv: Path) -> None:
    assert tasks(spark, csv, FieldMap({}))[3] == {"payload": '{"to":null,"prio":"6","body":"null"}'}
    assert tasks(spark, csv, FieldMap({}, ("prio", "to")))[0] == {"payload": '{"prio":"5","to":"ada"}'}


def test_a_line_of_json_stays_as_it_is(spark: SparkSession, lines: Path) -> None:
    found = tasks(spark, lines, FieldMap({"type": "to"}))
    assert [(task["payload"], task["type"]) for task in found] == [
        ('{"to":"ada","n":1.10,"big":12345678901234567890123}', "ada"), ('{"to":"bob","n":2}', "bob"),
    ]  # fmt: skip


def test_lines_need_not_be_objects(spark: SparkSession, lines: Path) -> None:
    lines.write_text('1\n"two"\n[3]\n')
    assert [task["payload"] for task in tasks(spark, lines, FieldMap({}))] == ["1", '"two"', "[3]"]
    lines.write_text('1\n{"to":"ada"}\n')
    assert [task["type"] for task in tasks(spark, lines, FieldMap({"type": "to"}))] == [None, "ada"]


def test_parquet_keeps_its_types(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "tasks.parquet"
    spark.sql(
        "SELECT 1 AS n, named_struct('a', array(1, 2)) AS doc, X'00ff' AS raw, timestamp_ntz '2030-01-01 00:00:00' due"
    ).write.parquet(str(path))
    mapped = to_tasks(read_file(spark, str(path)), FieldMap({"payload": "doc", "available_at": "due", "priority": "n"}))
    assert dict(mapped.dtypes)["available_at"] == "timestamp"
    assert [row["payload"] for row in mapped.collect()] == ['{"a":[1,2]}']
    assert tasks(spark, path, FieldMap({"payload": "raw"})) == [{"payload": bytearray(b"\x00\xff")}]


@pytest.mark.parametrize(
    "case",
    [
        ("tasks.csv", CSV, ["--map", "prio=prio"], "a task has no field 'prio'"),
        ("tasks.csv", CSV, ["--map", "priority=nope"], "there is no column 'nope'; the columns are to, prio, body"),
        ("tasks.csv", CSV, ["--payload-columns", "to,nope"], "there is no column 'nope'"),
        ("tasks.csv", CSV, ["--key", "nope"], "there is no column 'nope'"),
        (
            "tasks.csv",
            CSV,
            ["--map", "priority=to", "--key", "prio"],
            "the rows cannot be read: the column to has 'ada', which is no whole number",
        ),
        ("tasks.csv", CSV, ["--map", "payload=body", "--payload-columns", "to"], "give only one of both"),
        ("tasks.csv", "a,b\n1,2,3\n", [], "a row has more or fewer fields than the header: '1,2,3'"),
        ("tasks.csv", 'a,b\n1,2\n"3\n4"\n', [], "a row has more or fewer fields than the header: '\"3 4\"'"),
        ("tasks.csv", "a,b\n1,2,3\n", ["--payload-columns", "a"], "a row has more or fewer fields than the header"),
        ("tasks.csv", "", [], "cannot be read: it has no header"),
        ("tasks.csv", None, [], "cannot be read: .*does not exist"),
        ("tasks.xlsx", "", [], "is of no known kind"),
        ("tasks.parquet", "not parquet", [], "cannot be read"),
        ("tasks.jsonl", '{"a":1}\nnope\n', [], "cannot be read: 1 of its lines are not JSON"),
    ],
)
def test_bad_input_sends_nothing(
    service: Service, queue: Queue, tmp_path: Path, case: tuple[str, str | None, list[str], str]
) -> None:
    name, content, arguments, told = case
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(PipelineError, match=told) as refusal:
        load(tmp_path / name, service, queue, tmp_path, *arguments)
    assert "\n" not in str(refusal.value)
    assert queue.waiting() == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "say the queue: --queue NAME, or --map queue=COLUMN"),
        (["--queue", "q", "--tenant", "t", "--map", "tenant_id=to"], "--tenant and --map tenant_id=COLUMN cannot both"),
        (["--queue", "q", "--on-refused", "skip"], "--on-refused skip needs --refused-path DIR"),
    ],
)
def test_options_are_told_as_they_are_given(csv: Path, service: Service, arguments: list[str], told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        run_command("load", csv, "--to", service.url, *arguments)


def test_a_preview_sends_nothing(
    csv: Path, service: Service, queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.write_text(f"to\n{'x' * 500}\n")
    assert load(csv, service, queue, tmp_path, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 tasks would be enqueued\n")
    assert "payload={" in shown
    assert "x" * 100 not in shown
    assert queue.waiting() == 0


def test_a_finished_job_is_told_to_be_one(
    csv: Path, service: Service, queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = queue.name[:30]
    assert load(csv, service, queue, tmp_path, "--job", job) == 0
    assert f"job {job} is finished: 4 enqueued" in capsys.readouterr().out
    assert load(csv, service, queue, tmp_path, "--job", job) == 0
    assert capsys.readouterr().out.startswith(f"job {job} was finished before, and nothing is sent now: 4 enqueued")


def test_a_job_is_taken_up_again(csv: Path, service: Service, queue: Queue, tmp_path: Path) -> None:
    mapped = ["--map", "payload=body", "--job", queue.name[:30]]
    assert load(csv, service, queue, tmp_path / "a", *mapped) == 0
    done = queue.take_all()
    assert Counter(str(task["payload"]) for task in done) == {"{'a': 1}": 2, "[1, 2]": 1, "None": 1}
    # All parts are finished; and where that is not known, the keys are.
    assert load(csv, service, queue, tmp_path / "a", *mapped) == 0
    assert load(csv, service, queue, tmp_path / "b", *mapped) == 0
    assert queue.waiting() == 0
    # Two more rows, one of them equal to two that were sent.
    csv.write_text(CSV + 'eve,1,"{""a"": 1}"\neve,1,"7"\n')
    assert load(csv, service, queue, tmp_path / "a", *mapped) == 0
    assert [task["payload"] for task in sorted(queue.take_all(), key=str)] == [7, {"a": 1}]


@pytest.mark.parametrize("case", [("tasks.csv", "to,prio\n"), ("tasks.jsonl", "")])
def test_a_file_without_rows_is_a_job_of_none(
    service: Service, queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: tuple[str, str]
) -> None:
    name, content = case
    (tmp_path / name).write_text(content)
    assert load(tmp_path / name, service, queue, tmp_path, "--map", "type=to", "--payload-columns", "to,prio") == 0
    assert "0 enqueued, 0 were there already, 0 refused" in capsys.readouterr().out


def test_refused_rows_are_told(
    csv: Path, service: Service, queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.write_text("kind,key\nmail,1\nno name,2\n")
    mapped = ["--map", "type=kind", "--key", "key"]
    assert load(csv, service, queue, tmp_path, *mapped) == 1
    told = capsys.readouterr()
    assert "1 enqueued, 0 were there already, 1 refused" in told.out
    assert "leasemq: 1 of 2 rows were refused, the others are enqueued; the first: 2: type: a name has" in told.err
    skipping = ["--on-refused", "skip", "--refused-path", str(tmp_path / "refused")]
    assert load(csv, service, queue, tmp_path, *mapped, *skipping) == 0
    assert "no name" in "".join(path.read_text() for path in (tmp_path / "refused").iterdir())


def test_refused_rows_are_written_to_a_relative_path(
    csv: Path, service: Service, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv.write_text("kind\nno name\n")
    skipping = ["--map", "type=kind", "--on-refused", "skip", "--refused-path", "bad rows"]
    assert load(csv, service, queue, tmp_path, *skipping) == 0
    assert [path.suffix for path in (tmp_path / "bad rows").iterdir()] == [".jsonl"]


def test_a_rate_that_outlasts_the_window_is_refused(csv: Path, service: Service, queue: Queue, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="give a longer --dedupe-window"):
        load(csv, service, queue, tmp_path, "--rate", "0.1", "--dedupe-window", "20s")
    assert queue.waiting() == 0


def test_a_key_column_tells_rows_apart(spark: SparkSession, csv: Path) -> None:
    rows = load_rows(spark, str(csv), FieldMap({"payload": "body"}, key="prio"))
    assert not rows.repeated
    assert [row[IDENTITY] for row in rows.frame.collect()] == ["5", "7", "5", "6"]
