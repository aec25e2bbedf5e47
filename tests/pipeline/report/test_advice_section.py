"""The advice as it is shown: what is set now, what would be better, and what that rests on."""

from html import unescape

import pyarrow as pa
import pytest

from app.pipeline.report.advised import advice_table
from app.pipeline.report.figures import Figures
from app.pipeline.report.page.sections.advice import advice
from tests.pipeline.report.advising import advise_on
from tests.pipeline.report.making import T0


@pytest.fixture
def figures() -> Figures:
    busiest = pa.table({"tenant": ["one", "two", "one"], "queue": ["busy", "busy", "calm"]})
    return Figures(T0, None, {}, {"busiest_queues": busiest})


def test_a_change_is_told_with_what_is_set(figures: Figures) -> None:
    shown = str(advice(figures, [advise_on("one", "busy")]))
    assert "<span>30 s → <b>90 s</b></span>" in shown
    assert "95 % of tasks leased within 5 s" in shown
    assert "→ <b>5</b>" not in shown
    assert "few data" in shown
    assert "defaults assumed" in shown


def test_the_busiest_queue_comes_first_and_the_rest_is_told(figures: Figures) -> None:
    advised = [advise_on("one", name) for name in ("calm", *(f"rare-{n:03}" for n in range(30)), "busy")]
    shown = unescape(str(advice(figures, advised)))
    assert shown.index(">busy<") < shown.index(">calm<") < shown.index(">rare-000<")
    assert "rare-029" not in shown
    assert "The advice on 17 more queues is in tables/advice.csv." in shown


def test_tenants_are_told_apart_where_there_are_several(figures: Figures) -> None:
    shown = str(advice(figures, [advise_on("one", "calm"), advise_on("two", "busy"), advise_on("one", "busy")]))
    assert shown.index("busy · one") < shown.index("busy · two") < shown.index("calm · one")
    assert advice(figures, []) is None


def test_the_table_has_a_row_for_each_piece() -> None:
    found = advice_table([advise_on("one", "busy")])
    assert found["about"].to_pylist() == ["lease", "attempts", "backoff", "workers", "backlog"]
    assert found.to_pylist()[0]["sentence"] == "Do so."
    assert advice_table([]).schema.names == found.schema.names
    assert pa.types.is_string(advice_table([]).schema.field("queue").type)
