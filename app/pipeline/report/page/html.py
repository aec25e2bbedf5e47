"""Markup that cannot be forgotten to be escaped: plain text becomes markup only through `tag`."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

VOID = frozenset({"meta", "br"})


class Html(str):
    """Markup already, and safe."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"


def tag(name: str, *children: Child, **attributes: str | float | None) -> Html:
    """An element; text in it is escaped. `class_` is `class`, `_` in a name is `-`; None leaves an attribute out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{told}>" if name in VOID else f"<{name}{told}>{markup(*children)}</{name}>")


def markup(*children: Child) -> Html:
    """Several things one after the other, text escaped; None is nothing."""
    return Html("".join(_one(child) for child in children))


def _one(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return escape(str(child))
    return markup(*child)
