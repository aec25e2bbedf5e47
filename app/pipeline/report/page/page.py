"""The whole page: one file that needs nothing from outside."""

from collections.abc import Sequence
from importlib.resources import files

from app.pipeline.advice.findings import QueueAdvice
from app.pipeline.report.figures import Figures
from app.pipeline.report.page.html import Html, markup, tag
from app.pipeline.report.page.sections.advice import advice
from app.pipeline.report.page.sections.attempts import attempts
from app.pipeline.report.page.sections.course import outcomes, rhythm, throughput
from app.pipeline.report.page.sections.findings import findings
from app.pipeline.report.page.sections.headline import cards, headline
from app.pipeline.report.page.sections.missing import missing
from app.pipeline.report.page.sections.reasons import reasons
from app.pipeline.report.page.sections.singles import backlog, single_tasks, tenants
from app.pipeline.report.page.sections.times import run_time, wait_time

ANCHORS = {
    "stands-out": "What stands out", "throughput": "Throughput", "outcomes": "Success", "rhythm": "Rhythm",
    "wait": "Wait", "run": "Run time", "attempts": "Attempts", "reasons": "Reasons", "tasks": "Tasks",
    "tenants": "Tenants", "live": "Live now", "advice": "Advice", "meant": "What is meant",
}  # fmt: skip
# Nothing is loaded, and nothing runs, even if something foreign got in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SECTIONS = (findings, throughput, outcomes, rhythm, wait_time, run_time, attempts, reasons, single_tasks, tenants)


def render(figures: Figures, advised: Sequence[QueueAdvice]) -> str:
    """The page as one document."""
    # Where nothing ended, a page of empty plots would say less than the headline does.
    told = [section(figures) for section in SECTIONS] if figures.span else []
    content = markup(told, backlog(figures), advice(figures, advised), missing(figures))
    links = [tag("a", name, href=f"#{anchor}") for anchor, name in ANCHORS.items() if f' id="{anchor}"' in content]
    body = markup(
        tag("header", headline(figures), tag("nav", links) if len(links) > 1 else None),
        tag("main", cards(figures), content),
        tag(
            "footer",
            "Made by leasemq pipeline report. Every table of this page is beside it as Parquet and CSV, in tables/.",
        ),
    )
    return f"<!doctype html>\n{tag('html', _head(), tag('body', body), lang='en')}\n"


def _head() -> Html:
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", "What the queue did"),
        tag("style", Html(style)),
    )
