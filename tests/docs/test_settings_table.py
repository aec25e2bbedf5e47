"""The README tells of every setting what the code tells."""

from enum import Enum

from app.settings import Settings, variable_names
from tests.docs.markdown import README, marked, table


def shown(default: object) -> str:
    """A default as one writes it into a variable."""
    match default:
        case bool():
            return str(default).lower()
        case Enum():
            return str(default.value)
        case float():
            return f"{default:g}"
        case _:
            return str(default)


def settings_table() -> list[list[str]]:
    """The table as the code has it."""
    variables = variable_names()
    return [
        [f"`{variables[name]}`", f"`{shown(field.default)}`", field.description or ""]
        for name, field in Settings.model_fields.items()
    ]


def test_table_is_that_of_the_code() -> None:
    section = marked(README.read_text(encoding="utf-8"), "settings")
    assert table(section, "Variable", "Default", "Meaning") == settings_table()


def test_every_default_can_be_given_as_it_is_shown() -> None:
    given = {variable.strip("`"): default.strip("`") for variable, default, _ in settings_table()}
    assert Settings.from_environment(given) == Settings()
