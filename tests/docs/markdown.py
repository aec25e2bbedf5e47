"""Just enough Markdown to hold the documents to the code: sections, code blocks, tables, links."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    language: str
    text: str


def documents() -> list[Path]:
    """Every document of the project."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def marked(text: str, name: str) -> str:
    """What stands between the marks `<!-- name: begin -->` and `<!-- name: end -->`."""
    _, begin, rest = text.partition(f"<!-- {name}: begin -->\n")
    section, end, _ = rest.partition(f"<!-- {name}: end -->\n")
    if not begin or not end:
        raise ValueError(f"there is no section marked {name!r}")
    return section


def blocks(text: str) -> list[Block]:
    return [Block(match[1], match[2]) for match in _BLOCK.finditer(text)]


def table(text: str, *header: str) -> list[list[str]]:
    """The rows of the table with these columns."""
    lines = text.splitlines()
    start = lines.index(f"| {' | '.join(header)} |") + 2
    rows: list[list[str]] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append(_cells(line))
    return rows


def names(cell: str) -> list[str]:
    """The names in code font in a cell."""
    return _CODE.findall(cell)


def links(text: str) -> Sequence[str]:
    return _LINK.findall(_BLOCK.sub("", text))


def anchors(text: str) -> set[str]:
    """What a link can point to inside a document."""
    headings = _HEADING.findall(_BLOCK.sub("", text))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
