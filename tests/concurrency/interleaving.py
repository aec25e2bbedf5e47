"""Something that happens at a chosen moment inside a transaction of ours."""

from collections.abc import Callable, Mapping

from app.repository.dialect import Dialect
from app.repository.statements import read_statements
from tests.statements import watch


def before_statement(dialect: Dialect, text: str, happen: Callable[[], object], *, after: str = "") -> None:
    """Lets something happen once, right before the first statement that holds the text, once `after` was seen.

    The event loop stands still meanwhile, so it must happen in another process.
    """
    awaited = [happen]
    seen = [""]
    statements = read_statements(dialect.name)

    def look(statement: str, parameters: Mapping[str, object]) -> None:
        if awaited and text in statements[statement] and after in seen[0]:
            awaited.pop()()
        seen[0] += statements[statement]

    watch(dialect, look)
