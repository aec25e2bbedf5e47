"""Links between the documents lead somewhere."""

from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, anchors, documents, links


def problem_with(link: str, document: Path) -> str | None:
    """Why the link leads nowhere, or None if it does or leaves the project."""
    if link.startswith("https://"):
        return None
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not target.is_file():
        return f"{link}: there is no such file"
    if anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
        return f"{link}: there is no such heading"
    return None


@pytest.mark.parametrize("document", documents(), ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    found = [problem_with(link, document) for link in links(document.read_text(encoding="utf-8"))]
    assert [problem for problem in found if problem] == []


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "adr"
    listed = links((folder / "README.md").read_text(encoding="utf-8"))
    assert list(listed) == sorted(path.name for path in folder.glob("0*.md"))


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#nothing", "#nothing"])
def test_dead_links_are_found(link: str) -> None:
    assert problem_with(link, ROOT / "README.md") is not None
