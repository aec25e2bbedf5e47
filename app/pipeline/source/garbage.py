"""What Python's search for garbage leaves out in Spark's workers."""

import gc
from functools import cache


@cache
def spare_modules() -> None:
    """Keeps what is loaded by now out of the search: a worker makes one after each task, and modules stay anyway."""
    gc.freeze()
