"""Options are read before anything is sent, and one that is wrong is told in a line."""

import pickle
from pathlib import Path

import pytest

from app.pipeline.errors import PipelineError
from app.pipeline.sink.options import SinkOptions, read_options

URL = {"url": "http://127.0.0.1:8080"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "'url' is missing"),
        ({**URL, "que": "mail"}, "unknown option 'que'"),
        ({"url": "127.0.0.1:8080"}, "url is no address"),
        ({"url": "ftp://host"}, "url is no address"),
        ({"url": "http://"}, "url is no address"),
        ({"url": "http://host:port"}, "url is no address"),
        ({"url": "http://user:secret@host"}, "url is no address"),
        ({**URL, "queue": "no name"}, "queue 'no name' is no name"),
        ({**URL, "tenant": "t" * 65}, "is no name"),
        ({**URL, "job": "a:b", "key": "id"}, "is no job id"),
        ({**URL, "job": "again"}, "needs the option 'key'"),
        ({**URL, "batch_rows": "1001"}, "batch_rows is out of range"),
        ({**URL, "batch_rows": "many"}, "batch_rows is no number"),
        ({**URL, "dedupe_seconds": "nan"}, "dedupe_seconds is out of range"),
        ({**URL, "rate_per_second": "10"}, "needs 'parallelism'"),
        ({**URL, "on_refused": "ignore"}, "on_refused is fail or skip"),
        ({**URL, "on_refused": "skip"}, "needs 'refused_path'"),
        ({**URL, "api_key": "line\nbreak"}, "api_key holds what no header can"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(PipelineError, match=told) as refusal:
        read_options(given)
    assert "secret" not in str(refusal.value)


def test_options_are_read() -> None:
    options = read_options({**URL, "queue": "mail", "rate_per_second": "100", "parallelism": "4", "batch_rows": "10"})
    assert (options.queue, options.batch_rows, options.share_per_second) == ("mail", 10, 25.0)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("bad rows", str(Path.cwd() / "bad rows")),
        ("/bad", "/bad"),
        ("file:///bad", "file:///bad"),
        ("s3://b/c", "s3://b/c"),
    ],
)
def test_refused_rows_have_a_path_or_a_url(given: str, read: str) -> None:
    assert read_options({**URL, "refused_path": given}).refused_path == read


def test_every_write_is_a_job_of_its_own() -> None:
    assert read_options(URL).job != read_options(URL).job


def test_a_key_is_carried_to_the_executors_but_never_shown() -> None:
    options = read_options({**URL, "api_key": "s3cret"})
    carried: SinkOptions = pickle.loads(pickle.dumps(options))
    assert carried.api_key == "s3cret"
    assert "s3cret" not in repr(options)
