"""The page: it shows what was computed, needs nothing from outside, and lets nothing foreign in."""

import re
from collections.abc import Sequence
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.pipeline.advice.advise import Recorded
from app.pipeline.report.figures import Figures, compute_figures
from app.pipeline.report.page import words
from app.pipeline.report.page.page import render
from app.pipeline.report.page.sections.findings import find
from app.pipeline.tables import ATTEMPTS
from tests.pipeline.report.advising import advise_on
from tests.pipeline.report.making import dead_letters, frame, history, live
from tests.pipeline.report.sample import START, make_sample

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"
NOW = START + timedelta(days=14)
MEGABYTE = 1 << 20


class Outline(HTMLParser):
    """What a browser would make of the page: its elements, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def compute(
    spark: SparkSession,
    done: Sequence[dict[str, Any]] = (),
    dead: Sequence[dict[str, Any]] = (),
    attempts: Sequence[dict[str, Any]] = (),
    waiting: Sequence[dict[str, Any]] | None = None,
) -> Figures:
    recorded = Recorded(
        history(spark, done),
        frame(spark, ATTEMPTS, attempts),
        dead_letters(spark, dead),
        None if waiting is None else live(spark, waiting),
    )
    return compute_figures(recorded, NOW, lambda step: None)


@pytest.fixture(scope="module")
def figures(spark: SparkSession) -> Figures:
    """A fortnight; one queue logs failures alone, one nothing, and foreign names are everywhere."""
    sample = make_sample(2500)
    logged = [
        row for row in sample.attempts
        if row["queue"] != "search.index" and not (row["queue"] == "mail.send" and row["success"])
    ]  # fmt: skip
    foreign = {"queue": EVIL, "type": EVIL, "tenant_id": EVIL, "task_id": EVIL}
    done = {**foreign, "attempts": 9, "finished_at": START, "created_at": START, "available_at": START}
    failed = {**foreign, "worker_id": EVIL, "success": False, "reason": EVIL, "started_at": START}
    return compute(
        spark,
        [*sample.history, done],
        [*sample.dead, {**foreign, "reason": EVIL, "attempts": 9, "failed_at": START}],
        [*logged, {**failed, "finished_at": START + timedelta(hours=9)}],
        [{"queue": EVIL, "available_at": START}, {"queue": "webhooks", "available_at": NOW + timedelta(hours=1)}],
    )


@pytest.fixture(scope="module")
def page(figures: Figures) -> str:
    return render(figures, [advise_on("acme", "webhooks"), advise_on(EVIL, EVIL, EVIL)])


@pytest.fixture(scope="module")
def empty(spark: SparkSession) -> Figures:
    return compute(spark)


def test_the_page_is_whole(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    assert page.startswith("<!doctype html>")
    assert len(page.encode()) < MEGABYTE
    titles = ("Throughput", "Wait time", "Run time", "Why attempts failed", "Usage by tenant", "Live now", "Advice")
    assert all(title in outline.text for title in titles)


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    tags = Outline(page).tags
    assert not {tag for tag, _ in tags} & {"script", "img", "link", "iframe", "object", "embed", "image", "use"}
    for tag, attributes in tags:
        assert "src" not in attributes, tag
        assert str(attributes.get("href", "#")).startswith("#")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_foreign_text_stays_text(page: str) -> None:
    outline = Outline(page)
    assert EVIL in outline.text
    assert "script" not in {tag for tag, _ in outline.tags}
    assert not [name for _, attributes in outline.tags for name in attributes if name.startswith("on")]


def test_links_lead_somewhere(page: str) -> None:
    tags = Outline(page).tags
    anchors = {attributes.get("id") for _, attributes in tags}
    links = [str(attributes["href"])[1:] for _, attributes in tags if "href" in attributes]
    assert links
    assert set(links) <= anchors


def test_the_headline_tells_the_figures(figures: Figures, page: str) -> None:
    tasks, text = figures.only_row("tasks"), Outline(page).text
    assert tasks["tasks"] == 2502
    assert "2,502 tasks came to an end in 14 days" in text
    assert words.percent(tasks["success_rate"]) in text
    assert f"95 % within {words.seconds(tasks['wait_p95_seconds'])}" in text


def test_every_part_adds_up_to_the_whole(figures: Figures) -> None:
    for table in ("tasks", "attempts"):
        whole = figures.only_row(table)
        for by in ("queue", "type", "tenant", "hour"):
            assert sum(row[table] for row in figures.rows(f"{table}_by_{by}")) == whole[table]
    tasks = figures.only_row("tasks")["tasks"]
    assert sum(row["tasks"] for row in figures.rows("throughput_by_queue_and_hour")) == tasks
    assert sum(row["tasks"] for row in figures.rows("rhythm")) == tasks
    assert sum(row["failures"] for row in figures.rows("failure_reasons")) == figures.only_row("failures")["failures"]


def test_what_the_log_lacks_is_told_by_queue(figures: Figures, page: str) -> None:
    logged = {row["queue"]: row["logged"] for row in figures.rows("attempt_log")}
    assert (logged["webhooks"], logged["mail.send"]) == ("all", "failures")
    assert logged["search.index"] in {"off", "no success"}
    text = Outline(page).text
    assert "does not hold all attempts of 3 queues" in text
    assert re.search(r"No run times of [^.]*mail\.send", text)
    runs = {row["queue"]: row["runs"] for row in figures.rows("attempts_by_queue")}
    assert runs["mail.send"] == 0 < runs["webhooks"]


def test_what_stands_out_is_found(figures: Figures) -> None:
    told = " ".join(finding.sentence for finding in find(figures))
    assert "<b>webhooks</b> spends" in told
    assert "<b>reports.build</b> lost" in told
    assert "lacks attempts of 3 queues" in told


def test_of_nothing_a_short_page_says_so(empty: Figures) -> None:
    text = Outline(render(empty, [])).text
    assert "The lake holds no task that came to an end in this time." in text
    assert "Throughput" not in text
    assert find(empty) == []


def test_one_task_makes_a_page(spark: SparkSession) -> None:
    figures = compute(spark, done=[{"first_leased_at": START, "created_at": START, "available_at": START}], waiting=[])
    text = Outline(render(figures, [])).text
    assert "1 task came to an end in a moment" in text
    assert "all queues are empty" in text
