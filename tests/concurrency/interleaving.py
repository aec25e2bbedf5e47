"""Something that happens at a chosen moment inside a transaction of ours."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from app.repository.dialect import Dialect


def before_statement(dialect: Dialect, text: str, happen: Callable[[], object], *, after: str = "") -> None:
    """Lets something happen once, right before the first statement that holds the text, once `after` was seen.

    The event loop stands still meanwhile, so it must happen in another process.
    """
    awaited = [happen]
    seen = [""]

    def look(connection: Any, cursor: Any, statement: str, *more: object) -> None:
        if awaited and text in statement and after in seen[0]:
            awaited.pop()()
        seen[0] += statement

    event.listen(dialect.engine.sync_engine, "before_cursor_execute", look)
