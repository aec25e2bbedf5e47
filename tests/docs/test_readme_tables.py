"""The README names the calls and the commands that there are."""

import re

from app.main import create_app
from app.settings import Settings
from tests.docs.markdown import README, ROOT, blocks, names, table

TEXT = README.read_text(encoding="utf-8")


def test_calls_are_those_of_the_service() -> None:
    paths = create_app(Settings()).openapi()["paths"]
    served = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    documented = [name for call, _ in table(TEXT, "Call", "What it does") for name in names(call)]
    assert sorted(documented) == sorted(served)


def test_make_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {target for block in blocks(TEXT) for target in re.findall(r"^make ([a-z-]+)", block.text, re.MULTILINE)}
    assert named
    assert named <= targets
