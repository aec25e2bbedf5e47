"""`docs/benchmarks.md`: what is written by hand stays, what was measured is put in between two marks."""

from pathlib import Path

BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"


def put_between_marks(path: Path, text: str) -> None:
    """Replace what stands between the marks."""
    document = path.read_text(encoding="utf-8")
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{path} has no place for the results: {BEGIN} … {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
