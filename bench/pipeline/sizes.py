"""How many rows each form of a run has."""

from dataclasses import dataclass

from bench.forms import DEFAULT, QUICK, Form


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of each scenario; the growth is measured at a quarter of `attempts` and at all of them."""

    tasks: int
    history: int
    attempts: int
    enqueued: int


SIZES = {
    QUICK.name: Sizes(tasks=100_000, history=100_000, attempts=400_000, enqueued=50_000),
    DEFAULT.name: Sizes(tasks=1_000_000, history=1_000_000, attempts=5_000_000, enqueued=1_000_000),
}


def sizes_of(form: Form) -> Sizes:
    """The sizes of a form."""
    return SIZES[form.name]
