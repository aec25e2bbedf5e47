"""The document of the state machine shows the one that the code goes by."""

import re

from app.domain.task import Status
from app.domain.transitions import TRANSITIONS
from tests.docs.markdown import ROOT, blocks, names, table

TEXT = (ROOT / "docs" / "state-machine.md").read_text(encoding="utf-8")
ARROW = re.compile(r"^ +(\w+) --> (\w+): (\w+)$", re.MULTILINE)


def test_table_of_events_is_that_of_the_code() -> None:
    rows = table(TEXT, "Event", "From", "To", "When")
    documented = [(names(event), set(names(before)), set(names(after))) for event, before, after, _ in rows]
    assert documented == [([event], set(before), set(after)) for event, (before, after) in TRANSITIONS.items()]


def test_diagram_has_every_move_and_no_other() -> None:
    [diagram] = [block.text for block in blocks(TEXT) if block.language == "mermaid"]
    drawn = [(match[3], match[1], match[2]) for match in ARROW.finditer(diagram)]
    moves = {
        (event, before, after) for event, (sources, targets) in TRANSITIONS.items()
        for before in sources for after in targets
    }  # fmt: skip
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == moves


def test_every_state_is_explained() -> None:
    rows = table(TEXT, "State", "What it means", "Where it is kept")
    assert [names(state) for state, _, _ in rows] == [[status] for status in Status]
